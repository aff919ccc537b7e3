#include "tests/assembler/random_programs.h"

#include <fmt/format.h>

#include <bit>
#include <span>

#include "ptx/interpreter/interpreter.h"
#include "tests/assembler/random_statements.h"

namespace rndn::testing {
namespace {

using namespace random_ptx;

// Who comes to the statements: control flow, what lanes do together, functions and the frame of a kernel.
class Generator : Statements {
 public:
  using Statements::Statements;

  void kernel() {
    for (uint32_t n = chance(3) ? 1 + pick(2) : 0; n > 0; --n) function();
    begin(true, name_);
    f_.parameters = {{Type::u64, "in"}, {Type::u64, "out"}, {Type::u32, "a"}, {Type::u64, "b"},
                     {Type::u16, "c"},  {Type::f32, "d"},   {Type::f64, "e"}, {Type::b8, "f", 8, 16}};
    if (chance(4)) f_.required_threads = {program_threads, 1, 1};
    if (chance(6)) f_.max_registers = 24 + 8 * pick(6);
    const bool early = chance(5);
    left_ = 8 + pick(chance(6) ? 120 : 50);
    prologue();
    meet_ = !early, tile_ = early ? 1 : 32;
    while (left_ > 0) {
      statement(0);
      if (early && chance(10)) early_exit();
    }
    epilogue();
    end();
  }

 private:
  // ---- whole warps, tiles of them, and blocks, where all of their lanes come
  // The mask of the lane's tile.
  Operand tile_mask(uint32_t lanes) {
    if (lanes == 32) return imm(0xffffffff);
    const uint32_t first = make(Opcode::and_, Type::b32, {}, {reg(tid_), imm(32 - lanes)});
    return reg(make(Opcode::shl, Type::b32, {}, {imm((1 << lanes) - 1), reg(first)}));
  }
  // A number that is the same in all lanes of a tile.
  uint32_t tile_value(uint32_t lanes) {
    if (chance(2)) {
      const Modifiers of_first{.shuffle = ShuffleMode::idx, .sync = true};
      return make(Opcode::shfl, Type::b32, of_first,
                  {reg(source(I32)), imm(0), imm((32 - lanes) << 8 | 31), tile_mask(lanes)});
    }
    const uint32_t tile = make(Opcode::shr, Type::u32, {}, {reg(tid_), imm(std::countr_zero(lanes))});
    return make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(tile), imm(0x9e3779b1), reg(a_)});
  }
  void warp() {
    uint32_t lanes = tile_;
    Operand all = imm(mask_);
    if (!mask_ || chance(2)) {
      if (lanes < 32 || chance(3)) lanes >>= pick(static_cast<size_t>(std::countr_zero(lanes)));
      all = tile_mask(lanes);
    }
    Modifiers m;
    m.sync = true;
    switch (pick(m_.target >= 80 ? 5 : m_.target >= 70 ? 4 : 3)) {
      case 0: {
        m.shuffle = any({ShuffleMode::up, ShuffleMode::down, ShuffleMode::bfly, ShuffleMode::idx});
        const Kind kind = any({I32, F});
        const uint32_t farthest =
            m.shuffle == ShuffleMode::bfly ? lanes - 1 : 31;  // a lane of another tile is none to ask
        const Operand lane = chance(2) ? imm(pick(farthest + 1))
                                       : reg(make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm(farthest)}));
        const uint32_t width = lanes >> pick(static_cast<size_t>(std::countr_zero(lanes)));
        const int64_t clamp = (32 - width) << 8 | (m.shuffle == ShuffleMode::up ? 0 : 31);
        Operands d = {reg(target(kind, false))};
        if (chance(2)) d.push_back(reg(target(P, false)));
        emit(Opcode::shfl, Type::b32, m, d, {reg(source(kind)), lane, imm(clamp), all});
        break;
      }
      case 1: {
        m.vote = any({VoteMode::all, VoteMode::any, VoteMode::uni, VoteMode::ballot});
        Operand p = reg(source(P));
        p.negated = chance(2);
        const bool ballot = m.vote == VoteMode::ballot;
        emit(Opcode::vote, ballot ? Type::b32 : Type::pred, m, {reg(target(ballot ? I32 : P, false))}, {p, all});
        break;
      }
      case 2: {
        m.mode = 32;  // bar.warp.sync
        emit(Opcode::bar, Type::none, m, {}, {all});
        break;
      }
      case 3: {
        const Kind kind = any({I32, I64});
        m.mode = chance(2) ? 1 : 32;
        const uint32_t few = kind == I32 ? make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm(3)}) : source(I64);
        Operands d = {reg(target(I32, false))};
        if (m.mode == 32 && chance(2)) d.push_back(reg(target(P, false)));
        emit(Opcode::match, kind == I32 ? Type::b32 : Type::b64, m, d, {reg(few), all});
        break;
      }
      default: {
        m.atomic = any({AtomicOp::add, AtomicOp::min, AtomicOp::max, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_});
        const bool logic = m.atomic >= AtomicOp::and_;
        emit(Opcode::redux, logic ? Type::b32 : any({Type::u32, Type::s32}), m, {reg(target(I32, false))},
             {reg(source(I32)), all});
      }
    }
    add_targets();
  }
  void barrier() {
    const bool kept = frame_;
    frame_ = true;
    Modifiers m;
    m.sync = true;
    emit(Opcode::bar, Type::none, m, {}, chance(3) ? Operands{imm(pick(3)), imm(program_threads)} : Operands{imm(0)});
    frame_ = kept;
  }
  // Each thread leaves a word for another.
  void exchange() {
    if (chance(3)) {
      Modifiers m;
      Operand p = reg(source(P));
      p.negated = chance(2);
      const uint8_t mode = any<uint8_t>({64, 96, 97});
      m.mode = mode;
      emit(Opcode::bar, mode == 64 ? Type::u32 : Type::pred, m, {reg(target(mode == 64 ? I32 : P, false))},
           {imm(0), p});
      return add_targets();
    }
    const Kind kind = any({I32, I64});
    const Type type = kind_type[kind];
    const uint32_t mine = make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(tid_), imm(8), reg(exchange32_)});
    const uint32_t moved = make(Opcode::add, Type::u32, {}, {reg(tid_), imm(1 + pick(63))});
    const uint32_t other_thread = make(Opcode::and_, Type::b32, {}, {reg(moved), imm(program_threads - 1)});
    const uint32_t other =
        make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(other_thread), imm(8), reg(exchange32_)});
    const Modifiers shared{.space = Space::shared};
    emit(Opcode::st, type, shared, {}, {{.kind = Operand::address_reg, .id = mine}, reg(source(kind))});
    barrier();
    emit(Opcode::ld, type, shared, {reg(target(kind, false))}, {{.kind = Operand::address_reg, .id = other}});
    add_targets();
    barrier();
  }
  void copy_asynchronously() {
    if (m_.target < 80) return;
    const uint32_t bytes = any({4u, 8u, 16u});
    Modifiers m;
    m.mode = 1;
    const Region &to = regions_[shared_region_], &from = regions_[0];
    emit(Opcode::cp, Type::none, m, {},
         {{.kind = Operand::address_reg, .id = to.base, .value = pick(to.bytes / bytes) * bytes},
          {.kind = Operand::address_reg, .id = from.base, .value = pick(from.bytes / bytes) * bytes},
          imm(bytes)});
    m.mode = 33;
    emit(Opcode::cp, Type::none, m, {}, {});
  }

  // ---- control
  struct Scope_ {
    explicit Scope_(Generator& g) : g_(g), meet_(g.meet_), tile_(g.tile_), mask_(g.mask_), weight_(g.weight_) {
      for (size_t k = 0; k < kinds; ++k) sizes_[k] = g.pool_[k].size();
    }
    ~Scope_() {
      for (size_t k = 0; k < kinds; ++k) g_.pool_[k].resize(sizes_[k]);
      g_.meet_ = meet_, g_.tile_ = tile_, g_.mask_ = mask_, g_.weight_ = weight_;
    }
    Generator& g_;
    bool meet_;
    uint32_t tile_, mask_, weight_;
    std::array<size_t, kinds> sizes_{};
  };
  void block(uint32_t depth) {
    Scope_ scope(*this);
    for (uint32_t n = 1 + pick(5); n > 0; --n) statement(depth);
  }
  // How many lanes are to decide alike: those of the block, of a tile, or each for itself.
  uint32_t deciders() {
    if (meet_ && chance(3)) return program_threads;
    if (tile_ > 1 && chance(3)) return tile_ >> pick(static_cast<size_t>(std::countr_zero(tile_)));
    return 1;
  }
  // Code that lanes come to by such a decision.
  void narrow(uint32_t deciders) {
    if (deciders == program_threads) return;
    meet_ = false, tile_ = deciders, mask_ = 0;
  }
  // A number of a few bits.
  uint32_t decision(uint32_t deciders, uint32_t bits) {
    const bool kept = uniform_only_;
    uniform_only_ = deciders == program_threads;
    const uint32_t x = deciders > 1 && !uniform_only_ ? tile_value(deciders) : source(I32);
    uniform_only_ = kept;
    const uint32_t low = make(Opcode::shr, Type::u32, {}, {reg(x), imm(pick(12))});
    return make(Opcode::and_, Type::b32, {}, {reg(low), imm(bits)});
  }
  uint32_t condition(uint32_t deciders) {
    if (chance(3)) {
      if (deciders == 1) return source(P);
      const bool kept = uniform_only_;
      uniform_only_ = deciders == program_threads;
      const uint32_t p = source(P);
      const bool whole = uniform_only_;
      uniform_only_ = kept;
      if (whole) return p;
      const Modifiers m{.vote = any({VoteMode::all, VoteMode::any}), .sync = true};
      return make(Opcode::vote, Type::pred, m, {reg(p), tile_mask(deciders)});
    }
    const uint32_t few = decision(deciders, any({1, 3, 3, 7}));
    return compare(any({Compare::eq, Compare::ne, Compare::lt, Compare::ge}), Type::s32, reg(few), imm(pick(3)));
  }
  // A few statements in a loop of up to 16 iterations, whose counter takes literal steps from anywhere to what is so many of them away.
  void counted_loop(uint32_t together) {
    if (weight_ > 10) return operation();
    const int64_t step = any({1, 1, -1, 3, -4, 4});
    const bool ordered = chance(2);
    const Operand from = ordered ? imm(pick(100)) : reg(source(I32));
    const uint32_t trips = make(Opcode::add, Type::u32, {}, {reg(decision(together, any({3, 7, 15}))), imm(1)});
    const uint32_t bound = make(Opcode::mad, Type::s32, {.part = MulPart::lo}, {reg(trips), imm(step), from});
    const uint32_t counter = fresh(Type::u32), head = label();
    emit(Opcode::mov, Type::u32, {}, {reg(counter)}, {from});
    place(head);
    {
      Scope_ scope(*this);
      narrow(together);
      weight_ *= 8;
      know(I32, counter, true);
      for (uint32_t n = 1 + pick(4); n > 0; --n) switch (f_.is_entry ? pick(6) : 0) {
          case 3:
          case 4: load(); break;
          case 5: store(); break;
          default: operation();
        }
    }
    emit(Opcode::add, Type::s32, {}, {reg(counter)}, {reg(counter), imm(step)});
    const bool goes_on = chance(2);
    const Compare in_order = step > 0 ? Compare::lt : Compare::gt, against = step > 0 ? Compare::ge : Compare::le;
    const Compare c = ordered ? (goes_on ? in_order : against) : goes_on ? Compare::ne : Compare::eq;
    branch(head, compare(c, Type::s32, reg(counter), reg(bound)), !goes_on);
  }
  void control(uint32_t depth) {
    const uint32_t together = deciders();
    switch (pick(11)) {
      case 0:
      case 1: {  // if
        const uint32_t out = label();
        branch(out, condition(together), chance(2));
        {
          Scope_ scope(*this);
          narrow(together);
          block(depth + 1);
        }
        return place(out);
      }
      case 2:
      case 3: {  // if, else
        const uint32_t other = label(), out = label();
        branch(other, condition(together), chance(2));
        {
          Scope_ scope(*this);
          narrow(together);
          block(depth + 1);
          branch(out);
          place(other);
          block(depth + 1);
        }
        return place(out);
      }
      case 4:
      case 5: {  // loop
        if (weight_ > 30) return operation();
        const uint32_t counter = fresh(Type::u32), most = 1 + pick(4);
        Operand limit = imm(most);
        if (together < program_threads && chance(2)) limit = reg(decision(together, 3));
        emit(Opcode::mov, Type::u32, {}, {reg(counter)}, {imm(0)});
        const uint32_t head = label(), again = label(), out = label();
        const bool test_first = limit.kind == Operand::reg || chance(3);
        place(head);
        if (test_first) branch(out, compare(Compare::ge, Type::u32, reg(counter), limit));
        {
          Scope_ scope(*this);
          // Without a limit of their own the lanes stay together unless some break out.
          narrow(together);
          weight_ *= 3;
          know(I32, counter, true, meet_);
          loops_.push_back({again, out, meet_, tile_});
          block(depth + 1);
          loops_.pop_back();
          place(again);
        }
        emit(Opcode::add, Type::u32, {}, {reg(counter)}, {reg(counter), imm(1)});
        if (test_first)
          branch(head);
        else
          branch(head, compare(Compare::lt, Type::u32, reg(counter), imm(most)));
        return place(out);
      }
      case 6: {  // leave a loop or go on with its next round
        if (loops_.empty()) return operation();
        const Loop& loop = loops_[chance(3) ? pick(loops_.size()) : loops_.size() - 1];
        if (loop.meet || loop.tile != tile_) return operation();
        return branch(chance(2) ? loop.out : loop.again, condition(loop.tile), chance(2));
      }
      case 7: {  // the lanes of one half of every warp, or of every second tile
        if (tile_ < 32) return operation();
        const uint32_t other = label(), out = label(), bit = 16 >> pick(4);
        const uint32_t mine = make(Opcode::and_, Type::b32, {}, {reg(tid_), imm(bit)});
        branch(other, compare(Compare::eq, Type::u32, reg(mine), imm(0)));
        Scope_ scope(*this);
        narrow(bit);
        mask_ = 0xffffffffu / ((1u << bit) + 1) << bit;
        block(depth + 1);
        branch(out);
        place(other);
        mask_ >>= bit;
        block(depth + 1);
        return place(out);
      }
      case 8:
      case 9: return counted_loop(together);
      default: {  // switch
        const uint32_t x = decision(together, 3);
        const uint32_t cases = 2 + pick(3), out = label();
        std::vector<uint32_t> at;
        for (uint32_t c = 0; c < cases; ++c) {
          at.push_back(label());
          branch(at.back(), compare(Compare::eq, Type::u32, reg(x), imm(c)));
        }
        branch(out);
        Scope_ scope(*this);
        narrow(together);
        for (uint32_t c = 0; c < cases; ++c) {
          place(at[c]);
          block(depth + 2);
          if (!chance(4)) branch(out);
        }
        place(out);
      }
    }
  }
  void early_exit() {
    const uint32_t on = label();
    branch(on, condition(1), chance(2));
    const uint32_t v = bits_of(F, source(F));
    emit(Opcode::st, Type::b32, {.space = Space::global}, {},
         {{.kind = Operand::address_reg, .id = row_, .value = 0}, reg(v)});
    finish_words();
    emit(chance(2) ? Opcode::ret : Opcode::exit, Type::none, {}, {}, {});
    place(on);
  }
  void call() {
    if (callees_.empty()) return operation();
    const Callee& c = callees_[pick(callees_.size())];
    Operands results, arguments;
    const Modifiers m{.space = Space::param};
    for (Type t : c.parameters) {
      const uint32_t v = add_variable(Space::param, t, 0, 0, true);
      emit(Opcode::st, t, m, {}, {{.kind = Operand::address_var, .id = v}, reg(source(kind_of(t)))});
      arguments.push_back({.kind = Operand::variable, .id = v});
    }
    const uint32_t r = add_variable(Space::param, c.result, 0, 0, true);
    results.push_back({.kind = Operand::variable, .id = r});
    Operands sources = {{.kind = Operand::function, .id = c.index}};
    sources.insert(sources.end(), arguments.begin(), arguments.end());
    emit(Opcode::call, Type::none, {.uni = chance(2)}, results, sources);
    emit(Opcode::ld, c.result, m, {reg(target(kind_of(c.result), false))}, {{.kind = Operand::address_var, .id = r}});
    add_targets();
  }
  void statement(uint32_t depth) {
    if (left_ > 0) --left_;
    if (left_ == 0 && depth > 0) return operation();
    const uint32_t way = pick(100);
    if (meet_ && chance(9)) {
      uniform_only_ = true;
      if (chance(6))
        special();
      else
        operation();
      uniform_only_ = false;
      return;
    }
    const bool kernel = f_.is_entry;
    if (way < 46) return operation();
    if (way < 50) return pack();
    if (way < 55) return change_kind();
    if (way < 57) return special();
    if (way < 63) return kernel ? load() : operation();
    if (way < 69) return kernel ? store() : operation();
    if (way < 72) return kernel ? atomic() : operation();
    if (way < 75) return kernel ? count() : operation();
    if (way < 78) return carry_chain();
    if (way < 80) return call();
    if (way < 82) return kernel ? order() : operation();
    if (way < 86) return tile_ > 1 ? warp() : operation();
    if (way < 88) return meet_ ? exchange() : operation();
    if (way < 89) return kernel ? copy_asynchronously() : operation();
    return depth < 4 ? control(depth) : operation();
  }

  // ---- frames
  uint32_t parameter(uint32_t n, Type type, int64_t offset = 0) {
    return make(Opcode::ld, type, {.space = Space::param}, {{.kind = Operand::parameter, .id = n, .value = offset}});
  }
  // Values of every kind, from a few integers.
  void fill_pools(bool many) {
    for (uint32_t n = 2 + pick(many ? 12 : 3); n > 0; --n)
      know(I16, make(Opcode::cvt, Type::u16, {}, {reg(source(I32))}, Type::u16, Type::u32));
    for (uint32_t n = 2 + pick(many ? 16 : 3); n > 0; --n)
      know(F, chance(2)
                  ? make(Opcode::cvt, Type::f32, {.rounding = Rounding::rn}, {reg(source(I32))}, Type::f32, Type::s32)
                  : make(Opcode::mov, Type::b32, {}, {reg(source(I32))}, Type::f32));
    for (uint32_t n = 1 + pick(many ? 12 : 3); n > 0; --n)
      know(D, chance(2)
                  ? make(Opcode::cvt, Type::f64, {.rounding = Rounding::rn}, {reg(source(I32))}, Type::f64, Type::s32)
                  : make(Opcode::mov, Type::b64, {}, {reg(source(I64))}, Type::f64));
    for (uint32_t n = 1 + pick(3); n > 0; --n)
      know(H, chance(2)
                  ? make(Opcode::cvt, Type::f16, {.rounding = Rounding::rn}, {reg(source(F))}, Type::f16, Type::f32)
                  : make(Opcode::mov, Type::b16, {}, {reg(source(I16))}, Type::f16));
    for (uint32_t n = 1 + pick(2); n > 0; --n)
      know(H2, make(Opcode::mov, Type::b32, {}, {reg(source(I32))}, Type::f16x2));
    know(B, make(Opcode::mov, Type::b16, {}, {reg(source(I16))}, Type::bf16));
    know(B2, make(Opcode::mov, Type::b32, {}, {reg(source(I32))}, Type::bf16x2));
    for (uint32_t n = 2 + pick(many ? 12 : 3); n > 0; --n)
      know(P, compare(any({Compare::lt, Compare::gt, Compare::ne}), Type::s32, reg(source(I32)), constant(Type::s32)));
  }
  void prologue() {
    frame_ = true;
    const bool many = chance(5);
    const uint32_t in = parameter(0, Type::u64), out = parameter(1, Type::u64);
    a_ = parameter(2, Type::u32);
    know(I32, a_, true, true);
    know(I64, parameter(3, Type::u64), true, true);
    know(I16, parameter(4, Type::u16), true, true);
    know(F, parameter(5, Type::f32), true, true);
    know(D, parameter(6, Type::f64), true, true);
    know(I32, parameter(7, Type::u32, 4 * pick(4)), true, true);
    const uint32_t in_global = make(Opcode::cvta, Type::u64, {.space = Space::global, .to = true}, {reg(in)});
    const uint32_t out_global = make(Opcode::cvta, Type::u64, {.space = Space::global, .to = true}, {reg(out)});
    tid_ = make(Opcode::mov, Type::u32, {},
                {{.kind = Operand::special, .id = static_cast<uint32_t>(SpecialRegister::tid_x)}});
    const uint32_t block = make(Opcode::mov, Type::u32, {},
                                {{.kind = Operand::special, .id = static_cast<uint32_t>(SpecialRegister::ctaid_x)}});
    know(I32, block, true, true);
    know(I32, tid_, true);
    const uint32_t thread =
        make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(block), imm(program_threads), reg(tid_)});
    row_ = make(Opcode::mad, Type::u32, {.part = MulPart::wide}, {reg(thread), imm(program_row_bytes), reg(out_global)},
                Type::u64);
    auto generic = [&](Space s, uint32_t r) { return make(Opcode::cvta, Type::u64, {.space = s}, {reg(r)}); };
    auto moved = [&](uint32_t r, int64_t by) { return make(Opcode::add, Type::s64, {}, {reg(r), imm(by)}); };
    counter_words_ = moved(out_global, int64_t{program_blocks} * program_threads * program_row_bytes);
    counters_generic_ = generic(Space::global, counter_words_);
    for (uint32_t n = 0; n < program_counters; ++n) {
      Counter c{any({AtomicOp::add, AtomicOp::add, AtomicOp::min, AtomicOp::max, AtomicOp::and_, AtomicOp::or_,
                     AtomicOp::xor_, AtomicOp::inc, AtomicOp::dec}),
                Type::u32, 0};
      if (c.op == AtomicOp::add) c.type = any({Type::u32, Type::s32, Type::u64});
      if (c.op == AtomicOp::min || c.op == AtomicOp::max) c.type = any({Type::u32, Type::s32, Type::u64, Type::s64});
      if (c.op >= AtomicOp::and_) c.type = any({Type::b32, Type::b64});
      if (c.op == AtomicOp::inc || c.op == AtomicOp::dec) c.type = Type::u32, c.bound = 1 + pick(40);
      counters_.push_back(c);
    }
    // Values of the thread's own, from the input.
    const uint32_t mine = make(Opcode::and_, Type::b32, {}, {reg(thread), imm(127)});
    const uint32_t in_row =
        make(Opcode::mad, Type::u32, {.part = MulPart::wide}, {reg(mine), imm(32), reg(in_global)}, Type::u64);
    for (uint32_t n = 0; n < 2; ++n)
      know(I32, make(Opcode::ld, Type::u32, {.space = Space::global},
                     {{.kind = Operand::address_reg, .id = in_row, .value = 4 * pick(8)}}));
    for (uint32_t n = 1 + pick(many ? 20 : 3); n > 0; --n)
      know(I64, make(Opcode::ld, Type::b64, {.space = Space::global},
                     {{.kind = Operand::address_reg, .id = in_row, .value = 8 * pick(4)}}));
    for (uint32_t n = 2 + pick(many ? 24 : 4); n > 0; --n)
      know(I32, make(any({Opcode::add, Opcode::sub}), Type::u32, {}, {reg(source(I32)), reg(source(I32))}));
    know(I16, make(Opcode::ld, Type::u16, {.space = Space::global},
                   {{.kind = Operand::address_reg, .id = in_row, .value = 2 * pick(16)}}));
    know(P, compare(Compare::gt, Type::u32, reg(a_), imm(pick(9))), true, true);
    fill_pools(many);
    // Regions: input, own row, own stack, own part of shared memory, constants, a variable.
    regions_.push_back(
        {Space::global, in_global, generic(Space::global, in_global), UINT32_MAX, UINT32_MAX, program_in_bytes, false});
    const uint32_t scratch = moved(row_, 640);
    row_region_ = static_cast<uint32_t>(regions_.size());
    regions_.push_back({Space::global, scratch, generic(Space::global, scratch), UINT32_MAX, UINT32_MAX, 128, true});
    float_words_ = moved(row_, 832);
    const uint32_t stack = add_variable(Space::local, Type::b8, 64, 16, true);
    const uint32_t stack_at = make(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = stack}});
    for (uint32_t at = 0; at < 64; at += 8)
      emit(Opcode::st, Type::b64, {.space = Space::local}, {},
           {{.kind = Operand::address_var, .id = stack, .value = at}, reg(source(I64))});
    regions_.push_back({Space::local, stack_at, generic(Space::local, stack_at), UINT32_MAX, stack, 64, true});
    const uint32_t shared = add_variable(Space::shared, Type::b8, 64 * program_threads, 16, true);
    const uint32_t shared_at = make(Opcode::mov, Type::u32, {}, {{.kind = Operand::variable, .id = shared}});
    const uint32_t own32 = make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(tid_), imm(64), reg(shared_at)});
    const uint32_t own64 = make(Opcode::cvt, Type::u64, {}, {reg(own32)}, Type::u64, Type::u32);
    for (uint32_t at = 0; at < 64; at += 8)
      emit(Opcode::st, Type::b64, {.space = Space::shared}, {},
           {{.kind = Operand::address_reg, .id = own32, .value = at}, reg(source(I64))});
    shared_region_ = static_cast<uint32_t>(regions_.size());
    regions_.push_back({Space::shared, own64, generic(Space::shared, own64), own32, UINT32_MAX, 64, true});
    for (Space s : {Space::constant, Space::global}) {
      const uint32_t table = add_variable(s, Type::b8, 128, 16, false);
      Variable& v = m_.variables[static_cast<VariableId>(table)];
      for (uint32_t k = 0; k < 128; ++k) v.initial.push_back(static_cast<std::byte>(next()));
      const uint32_t at = make(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = table}});
      regions_.push_back({s, at, s == Space::global ? generic(s, at) : at, UINT32_MAX, table, 128, false});
    }
    exchange32_ =
        make(Opcode::mov, Type::u32, {},
             {{.kind = Operand::variable, .id = add_variable(Space::shared, Type::b64, program_threads, 8, true)}});
    has_block_counters_ = chance(3);
    if (has_block_counters_) {
      const uint32_t v = add_variable(Space::shared, Type::b64, program_counters, 8, true);
      block_counters_ = make(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = v}});
      block_counters_generic_ = generic(Space::shared, block_counters_);
      const uint32_t first = compare(Compare::eq, Type::u32, reg(tid_), imm(0));
      guard_ = static_cast<RegisterId>(first);
      for (uint32_t n = 0; n < program_counters; ++n)
        emit(Opcode::st, Type::u64, {.space = Space::shared}, {},
             {{.kind = Operand::address_var, .id = v, .value = 8 * n}, imm(5)});
      guard_ = rndn::none<RegisterId>();
      barrier();
    }
    frame_ = false;
  }
  // Sums of floats leave no NaN's bits.
  void finish_words() {
    const Modifiers global{.space = Space::global};
    for (Type t : {Type::f32, Type::f64}) {
      const Operand at{.kind = Operand::address_reg, .id = float_words_, .value = t == Type::f32 ? 0 : 8};
      const uint32_t v = bits_of(kind_of(t), make(Opcode::ld, t, global, {at}));
      emit(Opcode::st, bits_type(type_bytes(t)), global, {}, {at, reg(v)});
    }
  }
  void epilogue() {
    if (has_block_counters_ && meet_) {
      barrier();
      for (uint32_t n = 0; n < 3; ++n)
        know(I64, make(Opcode::ld, Type::u64, {.space = Space::shared},
                       {{.kind = Operand::address_reg, .id = block_counters_, .value = 8 * pick(program_counters)}}));
    }
    finish_words();
    const Modifiers global{.space = Space::global};
    uint32_t at = 0;
    uint32_t sum = UINT32_MAX;
    for (size_t k = 0; k < kinds; ++k)
      for (const Var& v : pool_[k]) {
        if (chance(6)) continue;
        const Kind kind = static_cast<Kind>(k);
        uint32_t bits = bits_of(kind, v.reg);
        const uint32_t bytes = kind == P ? 4 : type_bytes(kind_type[k]);
        if (at + 8 <= 632 && chance(2)) {
          at = (at + bytes - 1) / bytes * bytes;
          emit(Opcode::st, bits_type(bytes), global, {},
               {{.kind = Operand::address_reg, .id = row_, .value = at}, reg(bits)});
          at += bytes;
          continue;
        }
        if (bytes == 8)
          bits = make(Opcode::cvt, Type::u32, {},
                      {reg(make(Opcode::mul, Type::u64, {.part = MulPart::hi}, {reg(bits), imm(0x9e3779b97f4a7c15)}))},
                      Type::u32, Type::u64);
        if (bytes == 2) bits = make(Opcode::cvt, Type::u32, {}, {reg(bits)}, Type::u32, Type::u16);
        sum = sum == UINT32_MAX
                  ? bits
                  : make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(sum), imm(checksum_factor), reg(bits)});
      }
    if (sum != UINT32_MAX)
      emit(Opcode::st, Type::b32, global, {}, {{.kind = Operand::address_reg, .id = row_, .value = 636}, reg(sum)});
    emit(Opcode::ret, Type::none, {}, {}, {});
  }
  void function() {
    begin(false, fmt::format("{}_f{}", name_, callees_.size()));
    Callee c{index_, {Type::b32}, any({Type::u32, Type::b64, Type::f32, Type::f64, Type::s32})};
    for (uint32_t n = pick(4); n > 0; --n)
      c.parameters.push_back(any({Type::b32, Type::s32, Type::b64, Type::f32, Type::f64, Type::u64}));
    for (uint32_t k = 0; k < c.parameters.size(); ++k) {
      f_.parameters.push_back({c.parameters[k], fmt::format("p{}", k)});
      know(kind_of(c.parameters[k]), parameter(k, c.parameters[k]));
    }
    f_.results.push_back({c.result, "result"});
    a_ = source(I32);
    know(I64, make(Opcode::mul, Type::u32, {.part = MulPart::wide}, {reg(source(I32)), imm(0x9e3779b1)}, Type::u64));
    fill_pools(false);
    left_ = 3 + pick(12);
    while (left_ > 0) statement(1);
    emit(Opcode::st, c.result, {.space = Space::param}, {},
         {{.kind = Operand::parameter, .id = static_cast<uint32_t>(c.parameters.size())},
          reg(source(kind_of(c.result)))});
    emit(Opcode::ret, Type::none, {}, {}, {});
    end();
    callees_.push_back(c);
  }
};

}  // namespace

Module program_module(uint32_t sm) {
  Module m;
  m.version = program_version;
  m.target = sm;
  return m;
}

void add_random_kernel(Module& module, uint64_t seed, const std::string& name) {
  Generator(module, seed, name).kernel();
}

std::array<uint64_t, 8> program_parameters(uint64_t in, uint64_t out) {
  return {
      in, out, 5, 0x123456789abcdef0, 0x40490fdb0000beef, 0x4005bf0a8b145769, 0xfedcba9876543210, 0x00ff00ff7f800001};
}

std::vector<uint64_t> program_input(uint64_t seed) {
  static constexpr uint64_t special[] = {0,
                                         1,
                                         31,
                                         0x7f,
                                         0x80,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffffff,
                                         0x3ff0000000000000,
                                         0xbff0000000000000,
                                         0x7ff0000000000000,
                                         0xfff0000000000000,
                                         0x7ff8000000000000,
                                         0x0010000000000000,
                                         0x3f800000bf800000,
                                         0x7f800000ff800000,
                                         0x7fc0000000000001,
                                         0x00800000007fffff,
                                         0x4f0000004effffff,
                                         0x3c00bc007c00fc00,
                                         0x7e00000103ff0400,
                                         0x3f80bf807f80ff80};
  std::vector<uint64_t> words(program_in_bytes / 8);
  uint64_t state = seed;
  auto next = [&] {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  for (uint64_t& w : words) {
    switch (next() % 5) {
      case 0: w = special[next() % std::size(special)]; break;
      case 1: w = next(); break;
      case 2: w = next() >> next() % 64; break;
      case 3:
        w = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(next() % 2000001) - 1000000) / 64);
        break;
      default:
        w = uint64_t{std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(next() % 2001) - 1000) / 16)}
                << 32 |
            std::bit_cast<uint32_t>(static_cast<float>(next() % 4096));
    }
  }
  return words;
}

Result<std::vector<uint64_t>> interpreted(const ptx::Module& module, const std::string& kernel,
                                          const std::vector<uint64_t>& in, uint64_t seed) {
  ptx::Memory memory;
  const uint64_t in_at = memory.allocate(program_in_bytes), out_at = memory.allocate(program_out_bytes);
  memory.write(in_at, std::as_bytes(std::span(in)));
  const auto parameters = program_parameters(in_at, out_at);
  ptx::Launch launch;
  launch.grid = {program_blocks, 1, 1};
  launch.block = {program_threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(parameters));
  launch.seed = seed;
  launch.max_instructions = 20'000'000;
  auto stats = ptx::interpret(module, kernel, launch, memory);
  if (!stats) return stats.error();
  std::vector<uint64_t> out(program_out_bytes / 8);
  memory.read(out_at, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace rndn::testing
