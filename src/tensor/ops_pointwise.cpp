// Pointwise operations: checks and launches.
#include <fmt/format.h>

#include "tensor/check.h"
#include "tensor/ops.h"
#include "tensor/pointwise.h"

namespace millrace {
namespace {

constexpr const char* kUnaryNames[] = {"neg",        "abs",    "exp", "log", "sqrt", "sigmoid",
                                       "reciprocal", "square", "add", "sub", "mul",  "div",
                                       "min",        "max",    "sub", "div", "clamp"};
constexpr const char* kBinaryNames[] = {"add", "sub", "mul", "div", "min", "max"};
constexpr const char* kCompareNames[] = {"eq", "lt", "le"};

const char* name_of(UnaryOp op) { return kUnaryNames[static_cast<uint32_t>(op)]; }
const char* name_of(BinaryOp op) { return kBinaryNames[static_cast<uint32_t>(op)]; }
const char* name_of(CompareOp op) { return kCompareNames[static_cast<uint32_t>(op)]; }

/// The scalar form of a binary operation.
UnaryOp with_scalar(BinaryOp op) {
  return static_cast<UnaryOp>(static_cast<uint32_t>(UnaryOp::AddScalar) +
                              static_cast<uint32_t>(op));
}
static_assert(static_cast<uint32_t>(UnaryOp::MaxScalar) -
                  static_cast<uint32_t>(UnaryOp::AddScalar) ==
              static_cast<uint32_t>(BinaryOp::Max));

bool takes(UnaryOp op, Dtype dtype) {
  if (dtype == Dtype::F32) return true;
  if (dtype != Dtype::I32 && dtype != Dtype::U32) return false;
  switch (op) {
    case UnaryOp::Neg:
    case UnaryOp::Abs:
      return dtype == Dtype::I32;
    case UnaryOp::Square:
    case UnaryOp::AddScalar:
    case UnaryOp::SubScalar:
    case UnaryOp::MulScalar:
    case UnaryOp::MinScalar:
    case UnaryOp::MaxScalar:
    case UnaryOp::SubFromScalar:
    case UnaryOp::Clamp:
      return true;
    default:
      return false;
  }
}

bool takes(BinaryOp op, Dtype dtype) {
  return dtype == Dtype::F32 ||
         (op != BinaryOp::Div && (dtype == Dtype::I32 || dtype == Dtype::U32));
}

/// A unary operation and its scalars.
struct UnaryCall {
  UnaryOp op;
  double a = 0;
  double b = 0;
  const char* name() const { return name_of(op); }
};

PointwiseParams unary_params(const UnaryCall& call, std::initializer_list<const Tensor*> operands,
                             const Tensor& x, const Site& site) {
  PointwiseParams params = pointwise_params(operands, x.shape());
  params.op = static_cast<uint32_t>(call.op);
  params.a_bits =
      static_cast<uint32_t>(scalar_bits(call.name(), call.a, x.dtype(), operands, site));
  params.b_bits =
      static_cast<uint32_t>(scalar_bits(call.name(), call.b, x.dtype(), operands, site));
  return params;
}

void check_unary(const UnaryCall& call, const Tensor& x, const Site& site) {
  require_operands(call.name(), {&x}, site);
  if (!takes(call.op, x.dtype())) {
    fail(call.name(), fmt::format("does not take {}", to_string(x.dtype())), {&x}, site);
  }
}

/// `out` is contiguous and apart from `x`.
void launch_unary(const UnaryCall& call, const Tensor& out, const Tensor& x, const Site& site) {
  const PointwiseParams params = unary_params(call, {&out, &x}, x, site);
  launch(x.device(), KernelId::tensor_unary, params.n, {write(out, site), read_strided(x, site)},
         params, site);
}

Tensor run_unary(const UnaryCall& call, const Tensor& x, const Site& site) {
  check_unary(call, x, site);
  Tensor out = Tensor::empty(x.device(), x.shape(), x.dtype(), call.name(), site);
  launch_unary(call, out, x, site);
  return out;
}

void run_unary_in_place(const UnaryCall& call, const Tensor& x, const Site& site) {
  check_unary(call, x, site);
  require_writable(call.name(), x, {&x}, site);
  const PointwiseParams params = unary_params(call, {&x}, x, site);
  launch(x.device(), KernelId::tensor_unary_in_place, params.n, {update_strided(x, site)}, params,
         site);
}

void run_unary_out(const UnaryCall& call, const Tensor& out, const Tensor& x, const Site& site) {
  check_unary(call, x, site);
  require_operands(call.name(), {&out, &x}, site);
  require_writable(call.name(), out, {&out, &x}, site);
  if (out.shape() != x.shape() || out.dtype() != x.dtype()) {
    fail(call.name(), "the output needs the operand's shape and dtype", {&out, &x}, site);
  }
  if (out.is_contiguous() && !out.overlaps(x)) return launch_unary(call, out, x, site);
  out.copy_(run_unary(call, x, site), site);
}

Shape check_binary(BinaryOp op, const Tensor& a, const Tensor& b, const Site& site) {
  require_operands(name_of(op), {&a, &b}, site);
  if (a.dtype() != b.dtype()) fail(name_of(op), "dtypes differ; cast one", {&a, &b}, site);
  if (!takes(op, a.dtype())) {
    fail(name_of(op), fmt::format("does not take {}", to_string(a.dtype())), {&a, &b}, site);
  }
  return broadcast_shape(name_of(op), {&a, &b}, site);
}

/// `out` is contiguous and apart from the operands.
void launch_binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b,
                   const Site& site) {
  PointwiseParams params = pointwise_params({&out, &a, &b}, out.shape());
  params.op = static_cast<uint32_t>(op);
  launch(out.device(), KernelId::tensor_binary, params.n,
         {write(out, site), read_strided(a, site), read_strided(b, site)}, params, site);
}

void require_plain(UnaryOp op, const Tensor& x, const Site& site) {
  if (op > UnaryOp::Square)
    fail(name_of(op), "needs a scalar; use binary() or clamp()", {&x}, site);
}

}  // namespace

Tensor unary(UnaryOp op, const Tensor& x, Site site) {
  require_plain(op, x, site);
  return run_unary({op}, x, site);
}

void unary_out(UnaryOp op, const Tensor& out, const Tensor& x, Site site) {
  require_plain(op, x, site);
  run_unary_out({op}, out, x, site);
}

void unary_(UnaryOp op, const Tensor& x, Site site) {
  require_plain(op, x, site);
  run_unary_in_place({op}, x, site);
}

Tensor clamp(const Tensor& x, double low, double high, Site site) {
  return run_unary({UnaryOp::Clamp, low, high}, x, site);
}

void clamp_(const Tensor& x, double low, double high, Site site) {
  run_unary_in_place({UnaryOp::Clamp, low, high}, x, site);
}

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b, Site site) {
  const Shape shape = check_binary(op, a, b, site);
  Tensor out = Tensor::empty(a.device(), shape, a.dtype(), name_of(op), site);
  launch_binary(op, out, a, b, site);
  return out;
}

Tensor binary(BinaryOp op, const Tensor& a, double b, Site site) {
  return run_unary({with_scalar(op), b}, a, site);
}

Tensor binary(BinaryOp op, double a, const Tensor& b, Site site) {
  if (op != BinaryOp::Sub && op != BinaryOp::Div) return binary(op, b, a, site);
  return run_unary({op == BinaryOp::Sub ? UnaryOp::SubFromScalar : UnaryOp::DivideScalarBy, a}, b,
                   site);
}

void binary_out(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b, Site site) {
  const Shape shape = check_binary(op, a, b, site);
  require_operands(name_of(op), {&out, &a, &b}, site);
  require_writable(name_of(op), out, {&out, &a, &b}, site);
  if (out.shape() != shape || out.dtype() != a.dtype()) {
    fail(name_of(op), "the output needs the operands' broadcast shape and dtype", {&out, &a, &b},
         site);
  }
  if (out.is_contiguous() && !out.overlaps(a) && !out.overlaps(b)) {
    return launch_binary(op, out, a, b, site);
  }
  out.copy_(binary(op, a, b, site), site);
}

void binary_out(BinaryOp op, const Tensor& out, const Tensor& a, double b, Site site) {
  run_unary_out({with_scalar(op), b}, out, a, site);
}

void binary_(BinaryOp op, const Tensor& a, const Tensor& b, Site site) {
  const Shape shape = check_binary(op, a, b, site);
  require_writable(name_of(op), a, {&a, &b}, site);
  if (shape != a.shape()) {
    fail(name_of(op), "the second operand does not broadcast to the first", {&a, &b}, site);
  }
  Tensor operand = b;
  if (a.overlaps(b)) {
    operand = Tensor::empty(b.device(), b.shape(), b.dtype(), name_of(op), site);
    operand.copy_(b, site);
  }
  PointwiseParams params = pointwise_params({&a, &operand}, shape);
  params.op = static_cast<uint32_t>(op);
  launch(a.device(), KernelId::tensor_binary_in_place, params.n,
         {update_strided(a, site), read_strided(operand, site)}, params, site);
}

void binary_(BinaryOp op, const Tensor& a, double b, Site site) {
  run_unary_in_place({with_scalar(op), b}, a, site);
}

Tensor compare(CompareOp op, const Tensor& a, const Tensor& b, Site site) {
  require_operands(name_of(op), {&a, &b}, site);
  if (a.dtype() != b.dtype()) fail(name_of(op), "dtypes differ; cast one", {&a, &b}, site);
  const Shape shape = broadcast_shape(name_of(op), {&a, &b}, site);
  Tensor out = Tensor::empty(a.device(), shape, Dtype::U32, name_of(op), site);
  PointwiseParams params = pointwise_params({&out, &a, &b}, shape);
  params.op = static_cast<uint32_t>(op);
  launch(a.device(), KernelId::tensor_compare, params.n,
         {write(out, site), read_strided(a, site), read_strided(b, site)}, params, site);
  return out;
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, Site site) {
  require_operands("where", {&condition, &a, &b}, site);
  require_dtype("where", condition, Dtype::U32, {&condition, &a, &b}, site);
  require_dtype("where", b, a.dtype(), {&condition, &a, &b}, site);
  const Shape shape = broadcast_shape("where", {&condition, &a, &b}, site);
  Tensor out = Tensor::empty(a.device(), shape, a.dtype(), "where", site);
  const PointwiseParams params = pointwise_params({&out, &condition, &a, &b}, shape);
  launch(a.device(), KernelId::tensor_where, params.n,
         {write(out, site), read_strided(condition, site), read_strided(a, site),
          read_strided(b, site)},
         params, site);
  return out;
}

Tensor cast(const Tensor& x, Dtype dtype, Site site) {
  require_operands("cast", {&x}, site);
  if (x.dtype() == dtype) return x;
  Tensor out = Tensor::empty(x.device(), x.shape(), dtype, "cast", site);
  const PointwiseParams params = pointwise_params({&out, &x}, x.shape());
  launch(x.device(), KernelId::tensor_cast, params.n, {write(out, site), read_strided(x, site)},
         params, site);
  return out;
}

}  // namespace millrace
