# cmake -DOUT=file.cpp -DROOT=source "-DFILES=tpch/queries/q01.hir;ssb/sql/q1.1.sql;.." -P embed_queries.cmake: the texts of the benchmarks' queries as a C++ table.
set(rows "")
foreach(path IN LISTS FILES)
  string(REGEX MATCH "^([a-z]+)/(.*)/([^/]+)\\.[a-z]+$" parts ${path})
  file(READ ${ROOT}/${path} text)
  string(APPEND rows "    {\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\", \"${CMAKE_MATCH_3}\", R\"text(${text})text\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"tools/rndn.h\"\n\nnamespace rndn::tools {\nnamespace {\nconstexpr EmbeddedText texts[] = {\n${rows}};\n}  // namespace\nstd::span<const EmbeddedText> embedded_texts() { return texts; }\n}  // namespace rndn::tools\n")
