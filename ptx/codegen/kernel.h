// One kernel of an outlined program to PTX. Private to this folder.
#pragma once
#include "ptx/codegen/codegen.h"

namespace rndn::codegen {

// Appends the entry to `module`, and the functions of libdevice that it calls. Fails (fault input) with the name of an operation that has no GPU code.
Result<KernelCode> generate_kernel(const outliner::Outlined& outlined, uint32_t kernel_index, const Options& options,
                                   ptx::Module& module, hir::StatementId& refused_at);

}  // namespace rndn::codegen
