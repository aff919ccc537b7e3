// See lines.h. The writer makes what ptxas makes: a special opcode for a step to the next row where one fits, else advance_line,
// advance_pc and copy. Columns are not told, as there. Cost: linear in the rows.
#include "assembler/cubin/lines.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "libraries/base/errors/check.h"

namespace rndn::cubin {
namespace {

enum StandardOpcode : uint8_t {
  extended = 0,
  copy = 1,
  advance_pc = 2,
  advance_line = 3,
  set_file = 4,
  set_column = 5,
  negate_statement = 6,
  set_basic_block = 7,
  const_add_pc = 8,
  fixed_advance_pc = 9
};
enum ExtendedOpcode : uint8_t { end_sequence = 1, set_address = 2, define_file = 3, inlined_call = 0x90 };
constexpr uint8_t operand_counts[] = {0, 1, 1, 1, 1, 0, 0, 0, 1};  // of the standard opcodes from 1 on
constexpr uint8_t opcode_base = 10;
constexpr int line_base = -5, line_range = 14;

void put8(Bytes& out, uint64_t v) { out.push_back(static_cast<std::byte>(v)); }
void put32(Bytes& out, size_t at, uint64_t v) {
  for (size_t k = 0; k < 4; ++k) out[at + k] = static_cast<std::byte>(v >> 8 * k);
}
void put_unsigned(Bytes& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) put8(out, 0x80 | v);
  put8(out, v);
}
void put_signed(Bytes& out, int64_t v) {
  for (; v < -64 || v >= 64; v >>= 7) put8(out, 0x80 | (v & 0x7f));
  put8(out, static_cast<uint64_t>(v) & 0x7f);
}
void put_string(Bytes& out, std::string_view s) {
  for (char c : s) put8(out, static_cast<unsigned char>(c));
  put8(out, 0);
}

// Length of the folder's name in front of the last slash, 0: it has none that can be told apart.
size_t folder_length(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos || slash == 0 || slash + 1 == name.size() || name[slash - 1] == '/' ? 0
                                                                                                             : slash;
}

void put_header(Bytes& out, const std::vector<SourceFile>& files, bool inlined) {
  out.resize(10);  // lengths, filled in at last
  out[4] = std::byte{2};
  put8(out, 1);  // bytes of an instruction, the unit of addresses
  put8(out, 1);  // every row is a statement's beginning
  put8(out, static_cast<uint8_t>(line_base));
  put8(out, line_range);
  put8(out, opcode_base);
  for (uint8_t n : operand_counts) put8(out, n);
  std::map<std::string_view, uint64_t> folders;  // by name, from 1
  for (const SourceFile& f : files) {
    const std::string_view folder = std::string_view(f.name).substr(0, folder_length(f.name));
    if (!folder.empty() && folders.emplace(folder, folders.size() + 1).second) put_string(out, folder);
  }
  put8(out, 0);
  for (const SourceFile& f : files) {
    const size_t n = folder_length(f.name);
    put_string(out, std::string_view(f.name).substr(n ? n + 1 : 0));
    put_unsigned(out, n ? folders[std::string_view(f.name).substr(0, n)] : 0);
    put_unsigned(out, f.time);
    put_unsigned(out, f.bytes);
  }
  put8(out, 0);
  // Four more bytes, zero in all that ptxas writes: where the names begin in .debug_str. nvdisasm reads no tables of inlined calls without.
  if (inlined) out.resize(out.size() + 4);
  put32(out, 6, out.size() - 10);
}

void put_sequence(Bytes& out, const Kernel& k) {
  LineRow state{.line = 1};
  uint32_t file = 1;
  for (const LineRow& row : k.lines) {
    if (row.file + 1 != file) put8(out, set_file), put_unsigned(out, file = row.file + 1);
    if (row.caller != state.caller || row.function != state.function) {
      Bytes operands;
      put_unsigned(operands, row.caller);
      put_unsigned(operands, row.function);
      put8(out, extended);
      put_unsigned(out, operands.size() + 1);
      put8(out, inlined_call);
      out.insert(out.end(), operands.begin(), operands.end());
    }
    const int64_t lines = int64_t{row.line} - state.line;
    const uint64_t bytes = row.offset - state.offset;
    const uint64_t special = static_cast<uint64_t>(lines - line_base) + line_range * bytes + opcode_base;
    if (bytes > 0 && bytes < 32 && lines >= line_base && lines < line_base + line_range && special <= 255) {
      put8(out, special);
    } else {
      if (lines) put8(out, advance_line), put_signed(out, lines);
      if (bytes) put8(out, advance_pc), put_unsigned(out, bytes);
      put8(out, copy);
    }
    state = row;
  }
  put8(out, advance_pc);
  put_unsigned(out, k.code.size() - state.offset);
  for (uint8_t b : {extended, StandardOpcode{1}, StandardOpcode{end_sequence}}) put8(out, b);
}

// Bytes with a place, every read checked.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, size_t at) : bytes_(bytes), at_(at) {}
  size_t at() const { return at_; }
  bool done() const { return at_ >= bytes_.size(); }
  bool damaged() const { return damaged_; }
  uint64_t fixed(size_t bytes) {
    if (bytes > bytes_.size() - std::min(at_, bytes_.size())) return fail();
    uint64_t v = 0;
    for (size_t k = 0; k < bytes; ++k) v |= uint64_t{static_cast<uint8_t>(bytes_[at_ + k])} << 8 * k;
    at_ += bytes;
    return v;
  }
  uint64_t variable(bool is_signed = false) {
    uint64_t v = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = fixed(1);
      v |= (byte & 0x7f) << shift;
      if (byte & 0x80) continue;
      if (is_signed && (byte & 0x40) && shift + 7 < 64) v |= ~uint64_t{0} << (shift + 7);
      return v;
    }
    return fail();
  }
  std::string string() {
    std::string s;
    while (const uint64_t c = fixed(1)) s += static_cast<char>(c);
    return s;
  }
  void skip(uint64_t bytes) {
    if (bytes > bytes_.size() - std::min(at_, bytes_.size()))
      fail();
    else
      at_ += bytes;
  }

 private:
  uint64_t fail() {
    damaged_ = true;
    at_ = bytes_.size();
    return 0;
  }
  std::span<const std::byte> bytes_;
  size_t at_;
  bool damaged_ = false;
};

// The header behind its length and version; files go to the image.
struct Header {
  uint64_t unit = 1;  // of addresses
  int line_base = 0;
  uint64_t line_range = 1;
  std::vector<uint8_t> operand_counts;  // of the standard opcodes from 1 on
  uint32_t first_file = 0, files = 0;   // in the image
};
SourceFile read_file(Cursor& c, const std::vector<std::string>& folders) {
  SourceFile f;
  f.name = c.string();
  if (f.name.empty()) return f;  // the end of the table
  const uint64_t folder = c.variable();
  if (folder > 0 && folder <= folders.size()) f.name = folders[folder - 1] + "/" + f.name;
  f.time = c.variable();
  f.bytes = c.variable();
  return f;
}
Header read_header(Cursor& c, Image& image, std::vector<std::string>& folders) {
  Header h;
  h.unit = c.fixed(1);
  c.fixed(1);  // whether rows are statements at first
  h.line_base = static_cast<int8_t>(c.fixed(1));
  h.line_range = std::max<uint64_t>(1, c.fixed(1));
  const uint64_t base = c.fixed(1);
  for (uint64_t k = 1; k < base; ++k) h.operand_counts.push_back(static_cast<uint8_t>(c.fixed(1)));
  for (std::string name; !(name = c.string()).empty();) folders.push_back(name);
  h.first_file = static_cast<uint32_t>(image.files.size());
  for (SourceFile f; !(f = read_file(c, folders)).name.empty();) image.files.push_back(f);
  h.files = static_cast<uint32_t>(image.files.size()) - h.first_file;
  return h;
}

}  // namespace

LineProgram write_lines(const Image& image) {
  LineProgram p;
  p.addresses.resize(image.kernels.size());
  bool inlined = false;
  for (const Kernel& k : image.kernels)
    for (const LineRow& row : k.lines) inlined |= row.caller != 0;
  put_header(p.bytes, image.files, inlined);
  for (size_t i = image.kernels.size(); i-- > 0;) {
    const Kernel& k = image.kernels[i];
    if (k.lines.empty()) continue;
    for (const LineRow& row : k.lines) CHECK(row.file < image.files.size(), "file {} of a line", row.file);
    put8(p.bytes, extended);
    put_unsigned(p.bytes, 9);
    put8(p.bytes, set_address);
    p.addresses[i] = p.bytes.size();
    p.bytes.resize(p.bytes.size() + 8);
    put_sequence(p.bytes, k);
  }
  put32(p.bytes, 0, p.bytes.size() - 4);
  return p;
}

Result<std::vector<LineSequence>> read_lines(std::span<const std::byte> section, Image& image) {
  std::vector<LineSequence> sequences;
  for (size_t begin = 0; begin < section.size();) {
    Cursor lengths(section, begin);
    const uint64_t length = lengths.fixed(4);
    const size_t from = lengths.at();
    if (lengths.damaged() || length > section.size() - from)
      return input_error("section .debug_line: the program at offset {} reaches beyond its end", begin);
    const size_t end = from + length;
    Cursor c(section.first(end), from);
    begin = end;
    if (c.fixed(2) != 2) continue;
    const uint64_t header_bytes = c.fixed(4);
    const size_t program = c.at() + std::min<uint64_t>(header_bytes, end - c.at());
    std::vector<std::string> folders;
    Header h = read_header(c, image, folders);
    if (c.damaged() || c.at() > program)
      return input_error("section .debug_line: the header at offset {} is damaged", from);
    c.skip(program - c.at());
    LineSequence sequence;
    LineRow row{.line = 1};
    uint64_t file = 1;
    const auto add = [&] {
      row.file = h.first_file + static_cast<uint32_t>(file - 1);
      sequence.rows.push_back(row);
    };
    while (!c.done()) {
      const size_t at = c.at();
      const uint64_t opcode = c.fixed(1);
      bool adds = false;
      if (opcode > h.operand_counts.size()) {
        const uint64_t n = opcode - 1 - h.operand_counts.size();
        row.offset += n / h.line_range * h.unit;
        row.line += static_cast<uint32_t>(h.line_base + static_cast<int>(n % h.line_range));
        adds = true;
      } else if (opcode == extended) {
        const uint64_t bytes = c.variable();
        const size_t operands = c.at();
        const uint64_t kind = c.fixed(1);
        if (kind == end_sequence) {
          if (!sequence.rows.empty()) sequences.push_back(std::move(sequence));
          sequence = {}, row = {.line = 1}, file = 1;
        } else if (kind == set_address) {
          sequence.address_at = c.at();
          sequence.address = c.fixed(8);
        } else if (kind == define_file) {
          image.files.push_back(read_file(c, folders)), ++h.files;
        } else if (kind == inlined_call) {
          row.caller = static_cast<uint32_t>(c.variable());
          row.function = static_cast<uint32_t>(c.variable());
        }
        if (c.at() > operands + bytes || bytes == 0)
          return input_error("section .debug_line: the opcode at offset {} is damaged", at);
        c.skip(operands + bytes - c.at());
      } else {
        switch (opcode) {
          case copy: adds = true; break;
          case advance_pc: row.offset += c.variable() * h.unit; break;
          case advance_line: row.line += static_cast<uint32_t>(c.variable(true)); break;
          case set_file: file = c.variable(); break;
          case const_add_pc: row.offset += (254 - h.operand_counts.size()) / h.line_range * h.unit; break;
          case fixed_advance_pc:
            // Two bytes by DWARF; ptxas says that it has an operand of variable length, and never uses it.
            row.offset += c.fixed(2);
            break;
          default:
            for (uint8_t n = h.operand_counts[opcode - 1]; n > 0; --n) c.variable();
        }
      }
      if (c.damaged()) return input_error("section .debug_line: the opcode at offset {} is damaged", at);
      if (!adds) continue;
      if (file == 0 || file > 0xffff)
        return input_error("section .debug_line, offset {}: file {} of {}", at, file, h.files);
      for (; h.files < file; ++h.files) image.files.push_back({.name = fmt::format("<file {}>", h.files + 1)});
      if (row.caller > sequence.rows.size())
        return input_error("section .debug_line, offset {}: the call of row {} in row {}", at, row.caller,
                           sequence.rows.size() + 1);
      add();
    }
  }
  return sequences;
}

}  // namespace rndn::cubin
