# cmake -DOUT=file.cpp -DFILE=docs/horseir.md -P embed_text.cmake: the page as a function of the
# header tools/builtin_help.h.
file(READ ${FILE} text)
file(WRITE ${OUT} "#include \"tools/builtin_help.h\"\n\nnamespace rndn::tools {\n"
  "std::string_view language_reference() {\n  return R\"page(${text})page\";\n}\n"
  "}  // namespace rndn::tools\n")
