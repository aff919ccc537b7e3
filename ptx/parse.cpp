// Entry of the parser: text to tokens (lexer.l), grammar (parser.y), meaning (reader.cpp).
#include "ptx/parse.h"

#include <cstring>
#include <memory>
#include <span>

#include "ptx/reader.h"
#include "ptx_grammar.h"

namespace rndn::ptx {

void open_scanner(Reader& reader, std::span<char> buffer);  // lexer.l
void close_scanner(Reader& reader);

Module parse(FileId file, const SourceManager& sources, DiagnosticSink& sink) {
  std::string_view text = sources.text(file);
  // Sizes that count the NUL behind a text come with it (nvrtc's).
  while (!text.empty() && text.back() == 0) text.remove_suffix(1);
  if (text.size() >= INT32_MAX) {  // flex and our offsets count in 32 bits
    sink.error("unsupported", {file, 0, 0}, "unsupported file of 2 GB and more");
    return {};
  }
  if (text.starts_with("\x7f" "ELF")) {
    sink.error("syntax", {file, 0, 0}, "an ELF file, such as a cubin, is no PTX");
    return {};
  }
  Reader reader(file, text, sink);
  const size_t length = text.size() + 2;  // flex wants two NULs at the end
  const auto buffer = std::make_unique_for_overwrite<char[]>(length);
  if (!text.empty()) std::memcpy(buffer.get(), text.data(), text.size());
  buffer[length - 2] = buffer[length - 1] = 0;
  struct Closing {
    Reader& reader;
    ~Closing() { close_scanner(reader); }
  } closing{reader};  // also when memory runs out
  open_scanner(reader, {buffer.get(), length});
  grammar::Grammar grammar(reader);
  grammar.parse();
  return reader.take();
}

}  // namespace rndn::ptx
