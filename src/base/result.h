// Result<T>: a value or an Error, used where the program meets files, drivers and users.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace millrace {

/// What went wrong, in the terms a user can act on. Values are the process exit codes.
enum class ErrorCode : uint8_t {
  Internal = 1,
  Usage = 2,
  Dataset = 3,
  OutOfMemory = 4,
  DeviceLost = 5,
  Diverged = 6,
  Output = 7,
  Interrupted = 130,
};

/// An error with a message that names the file (and line or byte) and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
};

/// The one exception type; thrown by raise() alone and caught once, in app.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// Throws `error` as an Exception.
[[noreturn]] void raise(Error error);

/// A value of type T, or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit by design
  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  const Error& error() const { return std::get<Error>(state_); }
  /// The value, or the error thrown as an Exception.
  T or_raise() && {
    if (!ok()) raise(std::get<Error>(std::move(state_)));
    return std::get<T>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

/// Success, or the Error that prevented it.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT: implicit by design
  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_; }
  /// Nothing, or the error thrown as an Exception.
  void or_raise() && {
    if (failed_) raise(std::move(error_));
  }

 private:
  bool failed_ = false;
  Error error_;
};

}  // namespace millrace

/// Returns from the enclosing function when `expression` (a Result) failed.
#define MILLRACE_TRY(expression)                                       \
  do {                                                                 \
    auto millrace_try_result = (expression);                           \
    if (!millrace_try_result.ok()) return millrace_try_result.error(); \
  } while (false)

#define MILLRACE_CONCAT_INNER(a, b) a##b
#define MILLRACE_CONCAT(a, b) MILLRACE_CONCAT_INNER(a, b)
#define MILLRACE_ASSIGN_INNER(name, declaration, expression) \
  auto name = (expression);                                  \
  if (!name.ok()) return name.error();                       \
  declaration = std::move(name).value()

/// `MILLRACE_ASSIGN(auto x, f())`: x is f()'s value; returns from the function when f() failed.
#define MILLRACE_ASSIGN(declaration, expression) \
  MILLRACE_ASSIGN_INNER(MILLRACE_CONCAT(millrace_result_, __LINE__), declaration, expression)
