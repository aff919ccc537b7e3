// Result<T>: a value, or the Error that kept it from being made. Values instead of exceptions.
//
//   Result<Module> m = device.load(image);
//   if (!m) return m.error();
//   use(*m);
//
// Input errors with positions are Diagnostics (diagnostic.h); a Result error carries a finished sentence.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "libraries/base/errors/check.h"

namespace rndn {

// Who is at fault; decides the exit code (1, 2, 3, 70; 130: nobody, the user has ended it).
enum class Fault : uint8_t { input = 1, usage = 2, world = 3, internal = 70, interrupted = 130 };

// What callers act on beyond whose fault it is.
enum class Cause : uint8_t {
  other,
  cancelled,    // the work was ended (libraries/base/system/cancel.h)
  device_full,  // device memory for more is not there
  device_lost,  // nothing can be done with the device any more
  finding,      // a check that was asked for has found a difference
};

struct Error {
  Fault fault = Fault::internal;
  std::string
      message;  // lower case, no full stop; says what was tried and, for the driver, its own name for the failure
  uint32_t line = 0;  // of the input, from 1, where one is at fault that has no Diagnostic; 0: none known
  std::string subject;  // what it is about: a function of PTX, the text of a `require`; empty: nothing
  Cause cause = Cause::other;
  bool placed = false;  // the message begins with its place, as a diagnostic does
  Error at(uint32_t place) && {
    line = place;
    return std::move(*this);
  }
  Error about(std::string_view name) && {
    subject = name;
    return std::move(*this);
  }
  Error as(Cause why) && {
    cause = why;
    return std::move(*this);
  }
  int exit_code() const { return static_cast<int>(fault); }
};

template <class... Args>
Error input_error(fmt::format_string<Args...> format, Args&&... args) {
  return {Fault::input, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
  return {Fault::usage, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Error world_error(fmt::format_string<Args...> format, Args&&... args) {
  return {Fault::world, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & {
    CHECK(ok(), "{}", error().message);
    return std::get<0>(state_);
  }
  const T& operator*() const& {
    CHECK(ok(), "{}", error().message);
    return std::get<0>(state_);
  }
  T&& operator*() && {
    CHECK(ok(), "{}", error().message);
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace rndn

// RETURN_IF_ERROR(expression of type Result<..>): passes the error on to the caller.
#define RETURN_IF_ERROR(...)                             \
  do {                                                   \
    auto rndn_result_ = (__VA_ARGS__);                   \
    if (!rndn_result_.ok()) return rndn_result_.error(); \
  } while (0)
#define RNDN_CONCAT2(a, b) a##b
#define RNDN_CONCAT(a, b) RNDN_CONCAT2(a, b)
// ASSIGN_OR_RETURN(auto x, expression): declares x from the value or passes the error on.
#define ASSIGN_OR_RETURN(declaration, ...) \
  ASSIGN_OR_RETURN_(RNDN_CONCAT(rndn_result_, __LINE__), declaration, __VA_ARGS__)
#define ASSIGN_OR_RETURN_(temporary, declaration, ...) \
  auto temporary = (__VA_ARGS__);                      \
  if (!temporary.ok()) return temporary.error();       \
  declaration = *std::move(temporary)
