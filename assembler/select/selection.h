// Instruction selection of one kernel (select.cpp), as the pipeline calls it.
#pragma once
#include <vector>

#include "assembler/flow/structurize.h"
#include "assembler/isa/make.h"
#include "assembler/machine/ir.h"
#include "assembler/machine/options.h"
#include "libraries/base/containers/raw_vector.h"
#include "libraries/base/errors/result.h"
#include "ptx/layout.h"

namespace rndn::assembler {

// Memory that selection uses again.
struct SelectionRoom {
  RawVector<Inst> insts;
  std::vector<std::vector<InstId>> code;  // of blocks
};
Result<Function> select(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                        const ptx::SharedLayout& shared, const Options& options, isa::FormCache& forms, Arena& arena,
                        SelectionRoom& room);

}  // namespace rndn::assembler
