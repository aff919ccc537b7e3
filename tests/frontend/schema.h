// A schema in the shape of TPC-H's for the tests: tables with a few columns of every kind, foreign keys included.
#pragma once
#include "frontend/frontend.h"

namespace rndn::hir {

const SchemaView& test_schema();

}  // namespace rndn::hir
