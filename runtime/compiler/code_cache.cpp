#include "runtime/compiler/code_cache.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <type_traits>

#include "libraries/base/system/files.h"
#include "libraries/base/report/version.h"

namespace rndn::runtime {
namespace {

// Two independent multiply-and-fold hashes, 64 bits of input at a time. Not against adversaries: whoever can write the folder can write code anyway.
class Hash {
 public:
  void add(uint64_t x) {
    a_ = fold(a_ ^ x, 0x9e3779b97f4a7c15u);
    b_ = fold(b_ + x, 0xc2b2ae3d27d4eb4fu) ^ a_;
  }
  void add(std::string_view text) {
    add(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      add(word);
    }
  }
  CodeCache::Key key() const { return {a_, b_}; }

 private:
  static uint64_t fold(uint64_t x, uint64_t y) {
    const unsigned __int128 product = static_cast<unsigned __int128>(x ^ 0x2545f4914f6cdd1du) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  uint64_t a_ = 1, b_ = 2;
};

// The GNU build id of the running program: it changes with every build. Empty when the linker wrote none.
std::string build_id() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
          const char* at = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
          const char* end = at + info->dlpi_phdr[i].p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const char* name = at + sizeof note;
            const char* bytes = name + (note.n_namesz + 3) / 4 * 4;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
              static_cast<std::string*>(out)->assign(bytes, note.n_descsz);
            at = bytes + (note.n_descsz + 3) / 4 * 4;
          }
        }
        return 1;  // the first object is the program itself
      },
      &id);
  return id;
}

void add_operands(Hash& h, const RawVector<ptx::Operand>& operands) {
  h.add(operands.size());
  for (const ptx::Operand& o : operands) {
    h.add(uint64_t{o.kind} | uint64_t{o.negated} << 8 | uint64_t{o.count} << 16 | uint64_t{o.id} << 32);
    h.add(static_cast<uint64_t>(o.value));
  }
}
void add_locations(Hash& h, const std::vector<ptx::Location>& locations) {
  h.add(locations.size());
  for (const auto& [at, file, line, column, inlined, caller_file, caller_line, caller_column] : locations) {
    h.add(uint64_t{at} << 32 | inlined);
    h.add(uint64_t{file} << 32 | line);
    h.add(uint64_t{column} << 32 | caller_file);
    h.add(uint64_t{caller_line} << 32 | caller_column);
  }
}
void add_parameters(Hash& h, const std::vector<ptx::Parameter>& parameters) {
  h.add(parameters.size());
  for (const ptx::Parameter& p : parameters) {
    h.add(p.name);
    h.add(static_cast<uint64_t>(p.type) | uint64_t{p.align} << 32);
    h.add(p.count);
  }
}

constexpr std::string_view magic = "rndn code 1\n";

void put(std::string& out, uint64_t x) { out.append(reinterpret_cast<const char*>(&x), 8); }
void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}
bool take(std::string_view& in, uint64_t& x) {
  if (in.size() < 8) return false;
  std::memcpy(&x, in.data(), 8);
  in.remove_prefix(8);
  return true;
}
bool take(std::string_view& in, std::string_view& text) {
  uint64_t size = 0;
  if (!take(in, size) || size > in.size()) return false;
  text = in.substr(0, size);
  in.remove_prefix(size);
  return true;
}
uint64_t checksum(std::string_view bytes) {
  Hash h;
  h.add(bytes);
  return h.key().low;
}

std::string write(const CodeCache::Key& key, const assembler::Assembled& code) {
  std::string body;
  put(body, key.high);
  put(body, key.low);
  put(body, code.kernels.size());
  for (const assembler::KernelReport& k : code.kernels) {
    put(body, k.name);
    for (uint64_t x : {k.registers, k.instructions, k.spill_bytes, k.shared_bytes, k.spill_store_bytes,
                       k.spill_load_bytes, uint32_t{k.of_stencils}})
      put(body, x);
  }
  put(body, std::string_view(reinterpret_cast<const char*>(code.cubin.data()), code.cubin.size()));
  std::string out(magic);
  put(out, checksum(body));
  return out + body;
}

std::optional<assembler::Assembled> read(std::string_view in, const CodeCache::Key& key) {
  uint64_t sum = 0, high = 0, low = 0, count = 0;
  if (!in.starts_with(magic)) return {};
  in.remove_prefix(magic.size());
  if (!take(in, sum) || sum != checksum(in)) return {};
  if (!take(in, high) || !take(in, low) || high != key.high || low != key.low || !take(in, count)) return {};
  assembler::Assembled code;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view name;
    uint64_t numbers[7];
    if (!take(in, name)) return {};
    for (uint64_t& x : numbers)
      if (!take(in, x)) return {};
    code.kernels.push_back({std::string(name), static_cast<uint32_t>(numbers[0]), static_cast<uint32_t>(numbers[1]),
                            static_cast<uint32_t>(numbers[2]), static_cast<uint32_t>(numbers[3]),
                            static_cast<uint32_t>(numbers[4]), static_cast<uint32_t>(numbers[5]), numbers[6] != 0});
  }
  std::string_view cubin;
  if (!take(in, cubin) || !in.empty()) return {};
  const std::byte* bytes = reinterpret_cast<const std::byte*>(cubin.data());
  code.cubin.assign(bytes, bytes + cubin.size());
  return code;
}

}  // namespace

CodeCache::CodeCache(std::string directory) : directory_(std::move(directory)) {
  if (build_id().empty()) directory_.clear();  // nothing tells this build from another
}

// Each structure is taken apart by its members: a member that is added to it does not compile until the key knows it.
CodeCache::Key CodeCache::key_of(const ptx::Module& m, const assembler::Options& o) {
  Hash h;
  h.add(rndn::version());
  h.add(commit());
  h.add(build_id());
  const auto& [wanted, level, scheduler, most_registers, verify, branch_inlining, unrolling, contract, stencils,
               line_tables, stalls, stall_seed, pool, workspace] = o;
  static_cast<void>(pool);                                    // the code is the same with and without
  static_cast<void>(stencils), static_cast<void>(workspace);  // they count together
  h.add(wanted->name);
  h.add(uint64_t{static_cast<uint32_t>(level)} | uint64_t{static_cast<uint8_t>(scheduler)} << 32 |
        uint64_t{verify} << 40 | uint64_t{branch_inlining} << 41 | uint64_t{line_tables} << 42 |
        uint64_t{contract} << 43 | uint64_t{unrolling} << 44 | uint64_t{assembler::uses_stencils(o)} << 45 |
        uint64_t{static_cast<uint8_t>(stalls)} << 48);
  h.add(stall_seed);
  h.add(most_registers);
  const auto& [version, target, address_size, variables, functions, files, inlined] = m;
  h.add(uint64_t{version} << 32 | target);
  h.add(address_size);
  h.add(variables.size());
  for (const auto& [space, type, name, align, count, external, visible, initial, function, addresses, managed] :
       variables) {
    h.add(name);
    h.add(static_cast<uint64_t>(space) | static_cast<uint64_t>(type) << 8 | uint64_t{external} << 16 |
          uint64_t{visible} << 17 | uint64_t{managed} << 18 | uint64_t{align} << 32);
    h.add(count);
    h.add(function);
    h.add(std::string_view(reinterpret_cast<const char*>(initial.data()), initial.size()));
    h.add(addresses.size());
    for (const auto& [offset, of_function, generic, id, addend] : addresses) {
      h.add(uint64_t{offset} | uint64_t{of_function} << 32 | uint64_t{generic} << 33);
      h.add(id);
      h.add(static_cast<uint64_t>(addend));
    }
  }
  h.add(functions.size());
  for (const auto& [name, line, is_entry, visible, external, parameters, results, max_threads, required_threads,
                    min_blocks, max_registers, registers, register_names, labels, instructions, operands,
                    vector_elements, prototypes, targets, locations] : functions) {
    h.add(name);
    h.add(uint64_t{is_entry} | uint64_t{visible} << 1 | uint64_t{external} << 2 | uint64_t{line} << 32);
    add_parameters(h, parameters);
    add_parameters(h, results);
    for (uint32_t k = 0; k < 3; ++k) h.add(uint64_t{max_threads[k]} << 32 | required_threads[k]);
    h.add(uint64_t{min_blocks} << 32 | max_registers);
    h.add(registers.size());  // of registers only the types are in the code
    for (const ptx::Register& r : registers) h.add(static_cast<uint64_t>(r.type));
    h.add(labels.size());
    for (const ptx::Label& l : labels) h.add(l.at | uint64_t{l.nounroll} << 32);
    h.add(instructions.size());
    for (const auto& [op, type, type2, negated, operand_count, destination_count, guard, first_operand, mods, line] :
         instructions) {
      static_assert(std::has_unique_object_representations_v<ptx::Modifiers> && sizeof(ptx::Modifiers) <= 16);
      uint64_t modifiers[2] = {0, 0};
      std::memcpy(modifiers, &mods, sizeof mods);
      h.add(static_cast<uint64_t>(op) | static_cast<uint64_t>(type) << 16 | static_cast<uint64_t>(type2) << 24 |
            uint64_t{negated} << 32 | uint64_t{operand_count} << 40 | uint64_t{destination_count} << 48);
      h.add(uint64_t{index(guard)} << 32 | first_operand);
      h.add(modifiers[0]);
      h.add(modifiers[1]);
      h.add(line);
    }
    add_operands(h, operands);
    add_operands(h, vector_elements);
    h.add(prototypes.size());
    for (const auto& [prototype, to, from] : prototypes) {
      h.add(prototype);
      add_parameters(h, to);
      add_parameters(h, from);
    }
    h.add(targets.size());
    for (const auto& [table, places] : targets) {
      h.add(table);
      h.add(places.size());
      for (ptx::LabelId place : places) h.add(index(place));
    }
    add_locations(h, locations);
  }
  h.add(files.size());
  for (const auto& [number, name, time, bytes] : files) {
    h.add(number);
    h.add(name);
    h.add(time);
    h.add(bytes);
  }
  h.add(inlined.size());
  for (const std::string& name : inlined) h.add(name);
  return h.key();
}

std::string CodeCache::path(const Key& key) const {
  return fmt::format("{}/code/{:016x}{:016x}", directory_, key.high, key.low);
}

std::optional<assembler::Assembled> CodeCache::find(const Key& key) {
  {
    std::lock_guard lock(mutex_);
    if (auto at = known_.find(key); at != known_.end()) return at->second;
  }
  if (directory_.empty()) return {};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path(key), ignored)) return {};  // a pipe would never end
  auto text = read_file(path(key));
  if (!text) return {};
  std::optional<assembler::Assembled> code = read(*text, key);
  if (code) {
    std::lock_guard lock(mutex_);
    known_.try_emplace(key, *code);
  }
  return code;
}

void CodeCache::add(const Key& key, const assembler::Assembled& code) {
  {
    std::lock_guard lock(mutex_);
    if (!known_.try_emplace(key, code).second) return;
  }
  if (directory_.empty()) return;
  std::error_code failed, ignored;
  std::filesystem::create_directories(directory_ + "/code", ignored);
  const std::string final_name = path(key);
  const std::string own_name = fmt::format("{}.{}.{}", final_name, getpid(), static_cast<const void*>(&code));
  const bool written = write_file(own_name, write(key, code)).ok();
  if (written) std::filesystem::rename(own_name, final_name, failed);
  if (!written || failed) std::filesystem::remove(own_name, ignored);
}

Result<assembler::Assembled> assemble(CodeCache* cache, const ptx::Module& module, const assembler::Options& options,
                                      Timings& timings) {
  if (!cache) return assembler::assemble(module, options, timings);
  CodeCache::Key key;
  {
    auto scope = timings.measure(Phase::encode, "code cache");
    key = CodeCache::key_of(module, options);
    if (auto known = cache->find(key)) return *std::move(known);
  }
  ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
  auto scope = timings.measure(Phase::encode, "code cache");
  cache->add(key, made);
  return made;
}

}  // namespace rndn::runtime
