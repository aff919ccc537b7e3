#include "assembler/passes.h"
namespace rndn::assembler { std::vector<std::string> check_allocation(const Function&, const Function&) { return {}; } }
