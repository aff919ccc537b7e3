#include "assembler/select.h"
namespace rndn::assembler { Result<Function> select_pascal(const ptx::Module&, const ptx::Function& p, const Flow&, const SharedLayout&, const Options&) { return input_error("function {}: Pascal is not selected yet", p.name); } }
