// What becomes of a program, as text, without a device.
//
//   explain_program(program, options, source, {}, say);   // kernels, and why: `rndn explain`
//   emit_program(program, options, &schema, 0, say);      // a stage: PTX, machine code, ..
//
// Diagnostics go to `say`; the error that comes with them is empty.
#pragma once
#include <memory>
#include <string>

#include "runtime/compiler/compile.h"
#include "runtime/data/source.h"
#include "runtime/memory/column_forms.h"
#include "runtime/model/calibration.h"
#include "runtime/session/session.h"

namespace rndn::runtime {

struct ExplainForm {
  bool dot = false, counts = false, named = false;  // named: the program's name above
  bool json = false;  // with `model`: an object of JSON with what it says, and nothing else
  Encode encode = Encode::narrow;
  const model::Calibration* model = nullptr;  // of the device for which times are predicted; null: none are
};
// `source` may be null.
Result<std::string> explain_program(const NamedSource& program, const CompileOptions& options,
                                    const std::shared_ptr<data::Source>& source, ExplainForm form,
                                    const Say& say);
// A stage of a program as text (cubin: bytes), compiled for the target of the options. `schema` may be null.
Result<std::string> emit_program(const NamedSource& program, CompileOptions options,
                                 const data::Schema* schema, unsigned threads, const Say& say);

}  // namespace rndn::runtime
