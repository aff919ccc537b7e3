// The functions of libdevice that builtins need, by their names there: one for f64, the same name with `f` behind it for f32.
#pragma once
#include <string_view>

namespace rndn::libdevice {

inline constexpr std::string_view function_names[] = {
    "__nv_log",  "__nv_log2",  "__nv_log10", "__nv_exp",   "__nv_cos",  "__nv_sin",
    "__nv_tan",  "__nv_acos",  "__nv_asin",  "__nv_atan",  "__nv_cosh", "__nv_sinh",
    "__nv_tanh", "__nv_acosh", "__nv_asinh", "__nv_atanh", "__nv_pow",  "__nv_fmod",
};

}  // namespace rndn::libdevice
