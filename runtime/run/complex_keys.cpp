// Complex numbers as keys of operators, which know real ones.
//
// Where the order of the numbers is seen, or several columns are keys anyway, a column of complex numbers is two: its real and its imaginary parts
// (group). Else it is one of i64: a number per value, made of the first places where its parts occur in all the vectors that are compared (unique,
// member, index_of, join_index). A part that is NaN occurs nowhere; such numbers are equal to each other (`nan_equal`) or to nothing.
// Cost: two look-ups in hash tables per element. -0 is 0.
#include "runtime/run/execution.h"

namespace rndn::runtime {

using hir::BasicType;

// The part of each element as f64; of real numbers the imaginary one is 0.
Result<ItemPtr> Run::complex_part(const ItemPtr& v, bool imaginary) {
  if (v->type != BasicType::complex) {
    if (!imaginary) return convert(v, BasicType::f64);
    ASSIGN_OR_RETURN(const uint64_t count, size_of(*v));
    const Stretch zeros[] = {{nullptr, 0, count}};
    return concatenate(BasicType::f64, zeros);
  }
  ASSIGN_OR_RETURN(operators::Vector numbers, column(v));
  numbers.type = operators::Type::f64;
  OperatorMemory memory(*this, engine_.buffers);
  ASSIGN_OR_RETURN(operators::Vector made, sql_->complex_part(numbers, imaginary, memory));
  ItemPtr part = from_vector(made, BasicType::f64, memory);
  part->size_id = v->size_id;
  note_library_launches();
  return part;
}

Result<ItemPtr> Run::to_complex(const ItemPtr& v) {
  if (v->type == BasicType::complex) return v;
  ASSIGN_OR_RETURN(ItemPtr reals, convert(v, BasicType::f64));
  ASSIGN_OR_RETURN(const operators::Vector from, column(reals));
  OperatorMemory memory(*this, engine_.buffers);
  ASSIGN_OR_RETURN(operators::Vector made, sql_->to_complex(from, memory));
  ItemPtr complex = from_vector(made, BasicType::complex, memory);
  complex->size_id = v->size_id;
  note_library_launches();
  return complex;
}

// Replaces complex vectors, and real ones that are compared with them, by numbers: equal where the elements are.
Result<void> Run::number_complex(std::span<ItemPtr* const> vectors, bool nan_equal) {
  std::vector<uint64_t> counts;
  uint64_t all = 0;
  for (ItemPtr* v : vectors) {
    ASSIGN_OR_RETURN(const uint64_t count, size_of(**v));
    counts.push_back(count);
    all += count;
  }
  ItemPtr places[2];  // of all elements: where their part occurs first; `all`: nowhere
  for (const bool imaginary : {false, true}) {
    std::vector<Stretch> parts;
    for (size_t k = 0; k < vectors.size(); ++k) {
      ASSIGN_OR_RETURN(ItemPtr part, complex_part(*vectors[k], imaginary));
      RETURN_IF_ERROR(to_device(part));
      parts.push_back({std::move(part), 0, counts[k]});
    }
    ASSIGN_OR_RETURN(ItemPtr together, concatenate(BasicType::f64, parts));
    ASSIGN_OR_RETURN(const operators::Vector numbers, column(together));
    OperatorMemory memory(*this, engine_.buffers);
    ASSIGN_OR_RETURN(operators::Vector made, sql_->index_of(numbers, numbers, memory));
    places[imaginary] = from_vector(made, BasicType::i64, memory);
    note_library_launches();
  }
  uint64_t first = 0;
  for (size_t k = 0; k < vectors.size(); ++k) {
    operators::Vector parts[2];
    ItemPtr own[2];
    for (int part = 0; part < 2; ++part) {
      const Stretch stretch[] = {{places[part], first, counts[k]}};
      ASSIGN_OR_RETURN(own[part], concatenate(BasicType::i64, stretch));
      ASSIGN_OR_RETURN(parts[part], column(own[part]));
    }
    OperatorMemory memory(*this, engine_.buffers);
    const int64_t nowhere = nan_equal ? 0 : -1 - static_cast<int64_t>(k);
    ASSIGN_OR_RETURN(operators::Vector made, sql_->pair(parts[0], parts[1], all + 1, nowhere, memory));
    ItemPtr numbers = from_vector(made, BasicType::i64, memory);
    numbers->size_id = (*vectors[k])->size_id;
    note_library_launches();
    *vectors[k] = std::move(numbers);
    first += counts[k];
  }
  return {};
}

}  // namespace rndn::runtime
