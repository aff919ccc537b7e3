// See latency.h.
#include "assembler/latency.h"

#include <algorithm>

namespace rndn::assembler {

using L = isa::LatencyClass;
using isa::Family;
using isa::RegisterFile;

namespace {
bool has_result(const Inst& inst) {
  bool any = false;
  for_each_write(inst, [&](uint32_t, uint32_t, RegisterFile) { any = true; });
  return any;
}
bool is_memory(L c) {
  switch (c) {
    case L::global_load:
    case L::global_store:
    case L::global_atomic:
    case L::shared_load:
    case L::shared_store:
    case L::shared_atomic:
    case L::local_load:
    case L::local_store:
    case L::async_copy:
    case L::shuffle:
    case L::barrier:
    case L::space_query:
    case L::constant_load: return true;
    default: return false;
  }
}
}  // namespace

bool sets_write_barrier(const isa::Target& target, const Inst& inst) {
  switch (inst.latency) {
    case L::fp64: return target.fp64_scoreboard;
    case L::sfu:
    case L::special:
    case L::to_uniform:
    case L::constant_load:
    case L::global_load:
    case L::global_atomic:
    case L::shared_load:
    case L::shared_atomic:
    case L::local_load:
    case L::shuffle:
    case L::space_query: return has_result(inst);
    default: return false;
  }
}

bool reads_late(const isa::Target& target, const Inst& inst) {
  switch (inst.latency) {
    case L::fp64: return target.fp64_scoreboard;
    case L::sfu:
    case L::global_load:
    case L::global_store:
    case L::global_atomic:
    case L::shared_load:
    case L::shared_store:
    case L::shared_atomic:
    case L::local_load:
    case L::local_store:
    case L::shuffle:
    case L::constant_load:
    case L::space_query:
    case L::to_uniform:
    case L::async_copy: return true;
    case L::fence: return true;  // CCTL with an address
    default: return false;
  }
}

uint32_t read_after_write(const isa::Target& target, const Inst& producer, RegisterFile file, const Inst& consumer,
                          bool guard) {
  const L p = producer.latency, c = consumer.latency;
  if (target.family == Family::pascal) {
    if (sets_write_barrier(target, producer)) return 0;
    if (file == RegisterFile::predicate) return 13;
    if (p == L::range_reduction) return 2;
    switch (c) {
      case L::global_load:
      case L::global_store:
      case L::global_atomic:
      case L::local_load:
      case L::local_store:
      case L::sfu:
      case L::fence: return 2;
      case L::shared_load:
      case L::shared_store:
      case L::shared_atomic:
      case L::constant_load:
      case L::shuffle: return 4;
      default: return 6;
    }
  }
  if (p == L::uniform_move) return 4;
  if (p == L::uniform) return 12;
  if (file == RegisterFile::predicate) {
    if (p == L::fp64) return guard || c == L::branch || c == L::vote || c == L::barrier ? 14 : 8;
    if (sets_write_barrier(target, producer)) return 0;
    if (guard || c == L::branch || c == L::vote || c == L::barrier || is_memory(c)) return 13;
    return c == L::fma || c == L::wide || p == L::fma || p == L::wide ? 5 : c == L::fp64 ? 6 : 4;
  }
  if (p == L::fp64) return c == L::fp64 ? 8 : 10;
  if (sets_write_barrier(target, producer)) return 0;
  if (p == L::half_mma) return 10;
  if (p == L::cs2r) return 6;
  if (c == L::fp64) return 7;
  if (is_memory(c)) return p == L::wide ? 6 : 5;
  if (p == L::fma) return c == L::fma || c == L::wide ? 4 : 5;
  if (p == L::wide) return c == L::wide ? 6 : 5;
  return c == L::alu || c == L::vote ? 4 : 5;
}

uint32_t carry_distance(const Inst& producer) {
  return producer.sass.mnemonic == isa::Mnemonic::IMNMX || producer.sass.mnemonic == isa::Mnemonic::ISET ||
                 producer.sass.mnemonic == isa::Mnemonic::I2I
             ? 13
             : 6;
}

uint32_t settled(const isa::Target& target, const Inst& producer, RegisterFile file) {
  if (target.family == Family::pascal)
    return sets_write_barrier(target, producer) ? 0 : file == RegisterFile::predicate ? 13 : 6;
  if (producer.latency == L::fp64) return file == RegisterFile::predicate ? 14 : 10;
  if (sets_write_barrier(target, producer)) return 0;
  if (producer.latency == L::uniform) return 12;
  if (producer.latency == L::uniform_move) return 4;
  if (file == RegisterFile::predicate) return 13;
  return producer.latency == L::half_mma ? 10 : 7;
}

uint32_t write_after_write(const isa::Target& target, const Inst& first, const Inst& second) {
  if (sets_write_barrier(target, first)) return 1;  // the second waits for the first's scoreboard
  if (sets_write_barrier(target, second)) return 6;
  uint32_t a = settled(target, first, RegisterFile::gpr), b = second.latency == L::fp64 ? 8 : 4;
  return a > b ? a - b + 1 : 1;
}

uint32_t least_stall(const isa::Target& target, const Inst& inst) {
  const L c = inst.latency;
  using M = isa::Mnemonic;
  if (target.family == Family::pascal) {
    switch (c) {
      case L::branch: return inst.sass.mnemonic == M::EXIT ? 15 : 13;
      case L::barrier: return 15;
      case L::fence: return 15;
      case L::wait: return 3;
      default: return 1;
    }
  }
  switch (c) {
    case L::branch: return 5;
    case L::barrier:
    case L::fence: return 6;
    case L::convergence: return inst.sass.mnemonic == M::BSSY ? 2 : 12;
    default: return 1;
  }
}

uint32_t expected_latency(const isa::Target& target, const Inst& inst) {
  switch (inst.latency) {
    case L::global_load:
    case L::local_load: return 400;
    case L::global_atomic: return 500;
    case L::shared_load:
    case L::shared_atomic: return 30;
    case L::shuffle: return 25;
    case L::constant_load: return 40;
    case L::special:
    case L::sfu:
    case L::space_query: return 20;
    case L::fp64: return target.sm == 80 || target.sm == 60 || target.sm == 90 ? 10 : 48;
    default: return target.family == Family::pascal ? 6 : 5;
  }
}

}  // namespace rndn::assembler
