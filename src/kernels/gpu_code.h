// The code of the GPU entry points, embedded at build time.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

/// What a CUDA driver loads, and the threads per group of the entry point.
struct GpuCode {
  const void* image = nullptr;  // a cubin, a fatbin or PTX that ends in 0
  uint32_t group_size = 0;
};

namespace detail {
// Stands in until the Slang pipeline makes the code; its source is the convention's loop over
// data[i] += value.
inline constexpr char kAddU32Ptx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add_u32(
	.param .align 8 .b8 add_u32_param_0[48]
)
{
	.reg .pred 	%p<5>;
	.reg .b32 	%r<14>;
	.reg .b64 	%rd<25>;
	ld.param.v2.u32 	{%r6, %r7}, [add_u32_param_0+24];
	ld.param.v2.u32 	{%r8, %r9}, [add_u32_param_0+40];
	ld.param.u64 	%rd16, [add_u32_param_0+32];
	ld.param.u64 	%rd14, [add_u32_param_0+8];
	ld.param.u64 	%rd23, [add_u32_param_0];
	setp.eq.s64 	%p1, %rd14, 0;
	@%p1 bra 	$L__BB0_2;
	cvta.to.global.u64 	%rd17, %rd14;
	ld.global.u32 	%rd18, [%rd17];
	min.u64 	%rd23, %rd23, %rd18;
$L__BB0_2:
	add.s64 	%rd19, %rd23, 255;
	shr.u64 	%rd5, %rd19, 8;
	mov.u32 	%r10, %ctaid.x;
	cvt.u64.u32 	%rd24, %r10;
	setp.le.u64 	%p2, %rd5, %rd24;
	@%p2 bra 	$L__BB0_7;
	mov.u32 	%r11, %tid.x;
	cvt.u64.u32 	%rd7, %r11;
	cvt.u64.u32 	%rd8, %r7;
	cvta.to.global.u64 	%rd9, %rd16;
$L__BB0_4:
	shl.b64 	%rd20, %rd24, 8;
	add.s64 	%rd11, %rd20, %rd7;
	setp.ge.u64 	%p3, %rd11, %rd23;
	@%p3 bra 	$L__BB0_6;
	shl.b64 	%rd21, %rd11, 2;
	add.s64 	%rd22, %rd9, %rd21;
	ld.global.u32 	%r12, [%rd22];
	add.s32 	%r13, %r12, %r8;
	st.global.u32 	[%rd22], %r13;
$L__BB0_6:
	add.s64 	%rd24, %rd24, %rd8;
	setp.lt.u64 	%p4, %rd24, %rd5;
	@%p4 bra 	$L__BB0_4;
$L__BB0_7:
	ret;
}
)";
}  // namespace detail

/// The code of `entry_point`; a null image where there is none.
inline GpuCode find_cuda_code(std::string_view entry_point) {
  if (entry_point == "add_u32") return {detail::kAddU32Ptx, 256};
  return {};
}

}  // namespace millrace
