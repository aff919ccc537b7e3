// Result<T>: a value, or the Error that kept it from being made. Values instead of exceptions.
//
//   Result<Module> m = device.load(image);
//   if (!m) return m.error();
//   use(*m);
//
// Input errors with positions are Diagnostics (diagnostic.h); a Result error carries a finished sentence.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

// The Error of a Result that has one, shared by its copies. Each step that may fail makes, asks and destroys one, so what is done with an error is
// a call, and no code where steps succeed.
class SharedError {
 public:
  SharedError() = default;
  [[gnu::cold]] explicit SharedError(const Error& error);
  [[gnu::cold]] explicit SharedError(Error&& error);
  SharedError(const SharedError& other) noexcept : shared_(other.shared_) {
    if (shared_) [[unlikely]] share();
  }
  SharedError& operator=(SharedError other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~SharedError() {
    if (shared_) [[unlikely]] release();
  }
  bool none() const { return !shared_; }
  const Error& error() const {
    if (none()) no_error();
    return error_of();
  }
  [[noreturn, gnu::cold]] void no_value() const;

 private:
  struct Shared;
  [[gnu::cold]] void share() noexcept;
  [[gnu::cold]] void release() noexcept;
  [[gnu::cold]] const Error& error_of() const;
  [[noreturn, gnu::cold]] static void no_error();
  Shared* shared_ = nullptr;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(const Error& error) : error_(error) {}
  Result(Error&& error) : error_(std::move(error)) {}
  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
      : error_(other.error_) {
    if (ok()) std::construct_at(std::addressof(value_), other.value_);
  }
  // What is moved from has a value, or the error, as before.
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : error_(other.error_) {
    if (ok()) std::construct_at(std::addressof(value_), std::move(other.value_));
  }
  Result& operator=(Result other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~Result() {
    if (ok()) value_.~T();
  }

  bool ok() const { return error_.none(); }
  explicit operator bool() const { return ok(); }
  T& operator*() & {
    if (!ok()) error_.no_value();
    return value_;
  }
  const T& operator*() const& {
    if (!ok()) error_.no_value();
    return value_;
  }
  T&& operator*() && {
    if (!ok()) error_.no_value();
    return std::move(value_);
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const Error& error() const { return error_.error(); }

 private:
  SharedError error_;
  union {
    T value_;  // where there is no error
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(const Error& error) : error_(error) {}
  Result(Error&& error) : error_(std::move(error)) {}
  bool ok() const { return error_.none(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_.error(); }

 private:
  SharedError error_;
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
