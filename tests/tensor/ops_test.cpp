// The table of pointwise operations: value against float64 on the host, for every layout and size,
// and no host wait while recording.
#include "tensor/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/host_array.h"

namespace millrace::test {
namespace {

using Operands = const Tensor*;

Tensor copy_of(const Tensor& x) {
  Tensor out = Tensor::empty(x.device(), x.shape(), x.dtype(), "test");
  out.copy_(x);
  return out;
}

/// Every other element of a larger tensor, to be written in place or as an output.
Tensor strided_like(const Tensor& x) {
  return to_device(x.device(), make_array(x.shape(), x.dtype(), 0, 9, 5), Layout::Strided);
}

Tensor strided_copy_of(const Tensor& x) {
  const Tensor out = strided_like(x);
  out.copy_(x);
  return out;
}

struct Row {
  const char* name;
  int n_operands;
  Dtype in, out;
  double low, high;  // range of the inputs
  double tolerance;  // relative; 0: exact
  Tensor (*op)(Operands x);
  double (*reference)(const double* x);
};

double as_float(double x) { return static_cast<float>(x); }
double wrap_u32(double x) { return static_cast<uint32_t>(static_cast<int64_t>(x)); }
double wrap_i32(double x) { return static_cast<int32_t>(static_cast<uint32_t>(wrap_u32(x))); }

constexpr Dtype F32 = Dtype::F32, I32 = Dtype::I32, U32 = Dtype::U32, U8 = Dtype::U8,
                U64 = Dtype::U64;

// A tolerance of 6e-7 is five units in the last place: float32 libm against float64. Vulkan
// promises exp(x) within 3 + 2|x| units.
constexpr double kQuotient = -1;  // exact on the CPU; Vulkan promises a division within 2.5 units
constexpr double kQuotientTolerance = 3e-7;
const Row kRows[] = {
    {"neg", 1, F32, F32, -3, 3, 0, [](Operands x) { return neg(x[0]); },
     [](const double* x) { return -x[0]; }},
    {"neg I32", 1, I32, I32, -9, 9, 0, [](Operands x) { return neg(x[0]); },
     [](const double* x) { return -x[0]; }},
    {"abs", 1, F32, F32, -3, 3, 0, [](Operands x) { return abs(x[0]); },
     [](const double* x) { return std::fabs(x[0]); }},
    {"abs I32", 1, I32, I32, -9, 9, 0, [](Operands x) { return abs(x[0]); },
     [](const double* x) { return std::fabs(x[0]); }},
    {"exp", 1, F32, F32, -9, 9, 2.5e-6, [](Operands x) { return exp(x[0]); },
     [](const double* x) { return std::exp(x[0]); }},
    {"log", 1, F32, F32, 2, 9, 6e-7, [](Operands x) { return log(x[0]); },
     [](const double* x) { return std::log(x[0]); }},
    {"sqrt", 1, F32, F32, 0, 9, 6e-7, [](Operands x) { return sqrt(x[0]); },
     [](const double* x) { return std::sqrt(x[0]); }},
    {"sigmoid", 1, F32, F32, -9, 9, 6e-7, [](Operands x) { return sigmoid(x[0]); },
     [](const double* x) { return 1 / (1 + std::exp(-x[0])); }},
    {"reciprocal", 1, F32, F32, 1, 9, 6e-7, [](Operands x) { return reciprocal(x[0]); },
     [](const double* x) { return 1 / x[0]; }},
    {"square", 1, F32, F32, -9, 9, 6e-7, [](Operands x) { return square(x[0]); },
     [](const double* x) { return x[0] * x[0]; }},
    {"square U32 wraps", 1, U32, U32, 0, 94906265, 0, [](Operands x) { return square(x[0]); },
     [](const double* x) { return wrap_u32(x[0] * x[0]); }},
    {"clamp", 1, F32, F32, -3, 3, 0, [](Operands x) { return clamp(x[0], -1, 2); },
     [](const double* x) { return std::clamp(x[0], -1.0, 2.0); }},
    {"clamp I32", 1, I32, I32, -9, 9, 0, [](Operands x) { return clamp(x[0], -4, 2); },
     [](const double* x) { return std::clamp(x[0], -4.0, 2.0); }},
    {"unary_out into a strided view", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor out = strided_like(x[0]);
       unary_out(UnaryOp::Neg, out, x[0]);
       return out;
     },
     [](const double* x) { return -x[0]; }},
    {"unary_out onto the operand", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = copy_of(x[0]);
       unary_out(UnaryOp::Neg, y, y);
       return y;
     },
     [](const double* x) { return -x[0]; }},
    {"unary_ in place", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = copy_of(x[0]);
       unary_(UnaryOp::Abs, y);
       return y;
     },
     [](const double* x) { return std::fabs(x[0]); }},
    {"clamp_ on a strided view", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = strided_copy_of(x[0]);
       clamp_(y, -1, 1);
       return y;
     },
     [](const double* x) { return std::clamp(x[0], -1.0, 1.0); }},

    {"add", 2, F32, F32, -3, 3, 0, [](Operands x) { return add(x[0], x[1]); },
     [](const double* x) { return as_float(x[0] + x[1]); }},
    {"add U32 wraps", 2, U32, U32, 0, 4294967295.0, 0, [](Operands x) { return add(x[0], x[1]); },
     [](const double* x) { return wrap_u32(x[0] + x[1]); }},
    {"add I32 wraps", 2, I32, I32, -2147483648.0, 2147483647.0, 0,
     [](Operands x) { return add(x[0], x[1]); },
     [](const double* x) { return wrap_i32(x[0] + x[1]); }},
    {"sub", 2, F32, F32, -3, 3, 0, [](Operands x) { return sub(x[0], x[1]); },
     [](const double* x) { return as_float(x[0] - x[1]); }},
    {"sub U32 wraps", 2, U32, U32, 0, 99, 0, [](Operands x) { return sub(x[0], x[1]); },
     [](const double* x) { return wrap_u32(x[0] - x[1]); }},
    {"mul", 2, F32, F32, -3, 3, 0, [](Operands x) { return mul(x[0], x[1]); },
     [](const double* x) { return as_float(x[0] * x[1]); }},
    {"div", 2, F32, F32, 1, 3, kQuotient, [](Operands x) { return div(x[0], x[1]); },
     [](const double* x) { return as_float(x[0] / x[1]); }},
    {"min", 2, F32, F32, -3, 3, 0, [](Operands x) { return min(x[0], x[1]); },
     [](const double* x) { return std::min(x[0], x[1]); }},
    {"max I32", 2, I32, I32, -9, 9, 0, [](Operands x) { return max(x[0], x[1]); },
     [](const double* x) { return std::max(x[0], x[1]); }},
    {"add_ in place", 2, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = copy_of(x[0]);
       add_(y, x[1]);
       return y;
     },
     [](const double* x) { return as_float(x[0] + x[1]); }},
    {"mul_ on a strided view", 2, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = strided_copy_of(x[0]);
       mul_(y, x[1]);
       return y;
     },
     [](const double* x) { return as_float(x[0] * x[1]); }},
    {"sub_ of itself", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = copy_of(x[0]);
       sub_(y, y);
       return y;
     },
     [](const double*) { return 0.0; }},
    {"binary_out into a strided view", 2, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor out = strided_like(x[0]);
       binary_out(BinaryOp::Sub, out, x[0], x[1]);
       return out;
     },
     [](const double* x) { return as_float(x[0] - x[1]); }},
    {"binary_out onto an operand", 2, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = copy_of(x[0]);
       binary_out(BinaryOp::Mul, y, y, x[1]);
       return y;
     },
     [](const double* x) { return as_float(x[0] * x[1]); }},

    {"add scalar", 1, F32, F32, -3, 3, 0, [](Operands x) { return add(x[0], 1.5); },
     [](const double* x) { return as_float(x[0] + 1.5); }},
    {"sub scalar U32 wraps", 1, U32, U32, 0, 9, 0, [](Operands x) { return sub(x[0], 5.0); },
     [](const double* x) { return wrap_u32(x[0] - 5); }},
    {"mul scalar", 1, F32, F32, -3, 3, 0, [](Operands x) { return mul(x[0], 1.5); },
     [](const double* x) { return as_float(x[0] * 1.5); }},
    {"div scalar", 1, F32, F32, -3, 3, kQuotient, [](Operands x) { return div(x[0], 1.5); },
     [](const double* x) { return as_float(x[0] / 1.5); }},
    {"min scalar", 1, I32, I32, -9, 9, 0, [](Operands x) { return min(x[0], 2.0); },
     [](const double* x) { return std::min(x[0], 2.0); }},
    {"max scalar", 1, F32, F32, -3, 3, 0, [](Operands x) { return max(x[0], 0.5); },
     [](const double* x) { return std::max(x[0], 0.5); }},
    {"scalar minus", 1, F32, F32, -3, 3, 0,
     [](Operands x) { return binary(BinaryOp::Sub, 1.0, x[0]); },
     [](const double* x) { return as_float(1 - x[0]); }},
    {"scalar over", 1, F32, F32, 1, 3, kQuotient,
     [](Operands x) { return binary(BinaryOp::Div, 1.5, x[0]); },
     [](const double* x) { return as_float(1.5 / x[0]); }},
    {"div_ scalar in place", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor y = copy_of(x[0]);
       div_(y, 4.0);
       return y;
     },
     [](const double* x) { return x[0] / 4; }},
    {"binary_out scalar", 1, F32, F32, -3, 3, 0,
     [](Operands x) {
       Tensor out = strided_like(x[0]);
       binary_out(BinaryOp::Max, out, x[0], 0.0);
       return out;
     },
     [](const double* x) { return std::max(x[0], 0.0); }},

    {"eq", 2, I32, U32, -2, 2, 0, [](Operands x) { return eq(x[0], x[1]); },
     [](const double* x) { return x[0] == x[1] ? 1.0 : 0.0; }},
    {"lt", 2, F32, U32, -3, 3, 0, [](Operands x) { return lt(x[0], x[1]); },
     [](const double* x) { return x[0] < x[1] ? 1.0 : 0.0; }},
    {"le U64", 2, U64, U32, 0, 1e15, 0, [](Operands x) { return le(x[0], x[1]); },
     [](const double* x) { return x[0] <= x[1] ? 1.0 : 0.0; }},
    {"le U8", 2, U8, U32, 0, 4, 0, [](Operands x) { return le(x[0], x[1]); },
     [](const double* x) { return x[0] <= x[1] ? 1.0 : 0.0; }},
    {"where", 3, F32, F32, -3, 3, 0,
     [](Operands x) {
       return where(lt(x[2], Tensor::zeros(x[2].device(), {}, F32, "test")), x[0], x[1]);
     },
     [](const double* x) { return x[2] < 0 ? x[0] : x[1]; }},
    {"where U64", 2, U64, U64, 0, 1e15, 0,
     [](Operands x) { return where(le(x[0], x[1]), x[0], x[1]); },
     [](const double* x) { return std::min(x[0], x[1]); }},

    {"cast F32 to I32", 1, F32, I32, -99, 99, 0, [](Operands x) { return cast(x[0], I32); },
     [](const double* x) { return std::trunc(x[0]); }},
    {"cast F32 to U8 saturates", 1, F32, U8, -400, 400, 0,
     [](Operands x) { return cast(x[0], U8); },
     [](const double* x) { return std::clamp(std::trunc(x[0]), 0.0, 255.0); }},
    {"cast F32 to I32 saturates", 1, F32, I32, -4e9, 4e9, 0,
     [](Operands x) { return cast(x[0], I32); },
     [](const double* x) { return std::clamp(std::trunc(x[0]), -2147483648.0, 2147483647.0); }},
    {"cast U8 to F32", 1, U8, F32, 0, 255, 0, [](Operands x) { return cast(x[0], F32); },
     [](const double* x) { return x[0]; }},
    {"cast U64 to F32", 1, U64, F32, 0, 1e15, 0, [](Operands x) { return cast(x[0], F32); },
     [](const double* x) { return as_float(x[0]); }},
    {"cast U64 with its top bit to F32", 1, U64, F32, 9.3e18, 1.8e19, 0,
     [](Operands x) { return cast(x[0], F32); }, [](const double* x) { return as_float(x[0]); }},
    {"cast U32 to U8 wraps", 1, U32, U8, 0, 4e9, 0, [](Operands x) { return cast(x[0], U8); },
     [](const double* x) { return static_cast<double>(static_cast<uint32_t>(x[0]) & 255u); }},
    {"cast U32 to U64", 1, U32, U64, 0, 4e9, 0, [](Operands x) { return cast(x[0], U64); },
     [](const double* x) { return x[0]; }},
    {"cast U64 to U32 wraps", 1, U64, U32, 0, 1e15, 0, [](Operands x) { return cast(x[0], U32); },
     [](const double* x) { return wrap_u32(x[0]); }},
    {"cast I32 to U32 wraps", 1, I32, U32, -9, 9, 0, [](Operands x) { return cast(x[0], U32); },
     [](const double* x) { return wrap_u32(x[0]); }},
    {"contiguous U8", 1, U8, U8, 0, 255, 0, [](Operands x) { return x[0].contiguous(); },
     [](const double* x) { return x[0]; }},
};

/// Shapes of the operands of one run; the first has the broadcast shape.
struct Sizes {
  Shape first;
  Shape others;
};

// 16,384 is a block of the pointwise kernels.
const Sizes kSizes[] = {
    {Shape(0), Shape(0)},           {Shape(4, 0, 3), Shape(3)},
    {Shape(1), Shape(1)},           {Shape(17), Shape(1)},
    {Shape(16385), Shape(16385)},   {Shape(129, 3), Shape(129, 1)},
    {Shape(65, 3, 7), Shape(3, 1)}, {Shape(2, 3, 1, 2, 3, 2), Shape(1, 3, 2)},
};

void run_row(Device& device, const Row& row, const Sizes& sizes, Layout layout) {
  SCOPED_TRACE(std::string(row.name) + " " + sizes.first.str() + " " + sizes.others.str() + " " +
               to_string(layout));
  // A strided view of rank 6 would need a storage of rank 7.
  if (layout == Layout::Strided && sizes.first.rank() == kMaxRank) return;
  const bool writes_strided = std::string(row.name).find("strided") != std::string::npos ||
                              std::string(row.name) == "binary_out scalar";
  if (writes_strided && sizes.first.rank() == kMaxRank) return;
  std::vector<HostArray> hosts;
  std::vector<Tensor> operands;
  for (int i = 0; i < row.n_operands; ++i) {
    hosts.push_back(
        make_array(i == 0 ? sizes.first : sizes.others, row.in, row.low, row.high, 11 + i));
    operands.push_back(to_device(device, hosts.back(), layout));
  }
  const uint64_t waits = waits_of(device);
  const Tensor result = row.op(operands.data());
  EXPECT_EQ(waits_of(device), waits) << "recording waited";
  ASSERT_EQ(result.shape(), sizes.first);
  ASSERT_EQ(result.dtype(), row.out);
  const HostArray found = read_blocking(result);
  ASSERT_EQ(found.values.size(), sizes.first.numel());
  const double quotient = device.info().threads > 0 ? 0 : kQuotientTolerance;
  const double tolerance = row.tolerance == kQuotient ? quotient : row.tolerance;
  for (uint64_t i = 0; i < found.values.size(); ++i) {
    double x[3];
    for (int k = 0; k < row.n_operands; ++k) {
      x[k] = hosts[k].values[broadcast_index(i, sizes.first, hosts[k].shape)];
    }
    const double wanted = row.reference(x);
    ASSERT_LE(std::fabs(found.values[i] - wanted), tolerance * std::fabs(wanted))
        << "element " << i << ": found " << found.values[i] << ", wanted " << wanted;
  }
}

class OpsTable : public ::testing::TestWithParam<size_t> {};

TEST_P(OpsTable, EqualsTheHostReferenceAndNeverWaits) {
  const auto device = open_for_ops();
  for (const Sizes& sizes : kSizes) {
    for (Layout layout : kLayouts) run_row(*device, kRows[GetParam()], sizes, layout);
  }
}

std::string row_name(const ::testing::TestParamInfo<size_t>& info) {
  std::string name = kRows[info.param].name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pointwise, OpsTable, ::testing::Range(size_t{0}, std::size(kRows)),
                         row_name);

TEST(Ops, TreatNanAsDocumented) {
  const auto device = open_checked("cpu:2");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from_host(*device, std::vector<float>{nan, 1, 2}, {3}, "test");
  const Tensor y = Tensor::from_host(*device, std::vector<float>{5, nan, 1}, {3}, "test");
  EXPECT_EQ(read_blocking(min(x, y)).values, (std::vector<double>{5, 1, 1}));
  EXPECT_EQ(read_blocking(max(x, y)).values, (std::vector<double>{5, 1, 2}));
  EXPECT_EQ(read_blocking(le(x, y)).values, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(read_blocking(cast(x, I32)).values, (std::vector<double>{0, 1, 2}));
  EXPECT_TRUE(std::isnan(read_blocking(clamp(x, 0, 1)).values[0]));
  EXPECT_EQ(read_blocking(reduce_max(x)).values, (std::vector<double>{2}));
  EXPECT_EQ(read_blocking(reduce_min(x)).values, (std::vector<double>{1}));
}

TEST(Ops, WritingAStridedViewLeavesTheGapsAlone) {
  const auto device = open_checked("cpu:2");
  const Tensor base = Tensor::full(*device, {3, 2}, F32, 7, "test");
  add_(base.select(1, 0), 1.0);
  base.slice(1, 0, 1).slice(0, 1, 2).fill_(-1);
  EXPECT_EQ(read_blocking(base).values, (std::vector<double>{8, 7, -1, 7, 8, 7}));
}

TEST(Ops, NameTheOperandsAndTheCallSiteInErrors) {
  const auto device = open_checked("cpu:2");
  const Tensor a = Tensor::zeros(*device, {4, 3}, F32, "test");
  const Tensor b = Tensor::zeros(*device, {2}, F32, "test");
  const Tensor u = Tensor::zeros(*device, {3}, U32, "test");
  struct Bad {
    std::function<void()> call;
    const char* message;
  };
  const Bad cases[] = {
      {[&] { add(a, b); },
       "add: shapes do not broadcast; operands [4,3] F32, [2] F32; called at ops_test.cpp:"},
      {[&] { add(a, u); }, "add: dtypes differ; cast one; operands [4,3] F32, [3] U32; called at"},
      {[&] { div(u, u); }, "div: does not take U32"},
      {[&] { exp(u); }, "exp: does not take U32"},
      {[&] { add(u, 0.5); }, "add: 0.5 is not a value of U32"},
      {[&] {
         add_(b.unsqueeze(0).expand({5, 2}), 1.0);
       },
       "an expanded view cannot be written"},
      {[&] {
         add_(u, Tensor::zeros(*device, {2, 3}, U32, "test"));
       },
       "does not broadcast to the first"},
      {[&] { add(Tensor(), a); }, "add: an operand is undefined; operands undefined, [4,3] F32"},
      {[&] { unary_out(UnaryOp::Neg, b, a); }, "neg: the output needs the operand's shape"},
      {[&] { where(a, a, a); }, "where: needs U32, found F32"},
      {[&] { reduce_mean(u); }, "reduce_mean: does not take U32"},
      {[&] { reduce_sum(a, 2); }, "reduce_sum: dimension 2 is outside a rank of 2"},
      {[&] { reduce_max(a.slice(0, 0, 0)); }, "reduce_max: nothing to reduce"},
      {[&] {
         cat({a, b}, 0);
       },
       "cat: extents other than 0 differ; operands [4,3] F32, [2] F32"},
      {[&] { gather(a, a); }, "gather: needs U32, found F32"},
      {[&] { scatter_(a, u, a); }, "scatter_: the rows must be [3,3]"},
      {[&] { exclusive_scan(a); }, "exclusive_scan: needs U32, found F32"},
      {[&] { radix_sort_pairs(u, u, {}, 5, 33); }, "bits [5,33) are not in the key"},
      {[&] { radix_sort_pairs(u, u, a); }, "the count must be U32 [1], found [4,3] F32"},
  };
  for (const Bad& bad : cases) {
    EXPECT_NE(error_of(bad.call).find(bad.message), std::string::npos)
        << "wanted: " << bad.message << "\nfound:  " << error_of(bad.call);
  }
}

}  // namespace
}  // namespace millrace::test
