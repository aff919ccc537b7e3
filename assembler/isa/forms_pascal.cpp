// placeholder until rows exist
#include "assembler/isa/form.h"
namespace rndn::isa { std::span<const Form> pascal_forms() { return {}; } }
