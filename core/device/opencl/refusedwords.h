// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage::gate::opencl {

/// Words that mean something else in a candidate: inline assembly, and attributes that place code or start it when it is loaded; and what the
/// compiler offers to move the stack pointer, to leave a function by another way, or to change what the processor does for whoever runs on
/// the thread next: rounding, exceptions, flags, segments, keys; and the thread's own memory.
inline constexpr const char *refusedWords[] = {
    "asm",
    "__asm",
    "__asm__",
    "constructor",
    "__constructor__",
    "destructor",
    "__destructor__",
    "ifunc",
    "__ifunc__",
    "section",
    "__section__",
    "naked",
    "__naked__",
    "alloca",
    "__builtin_alloca",
    "__builtin_alloca_uninitialized",
    "__builtin_alloca_with_align",
    "__builtin_alloca_with_align_uninitialized",
    "__builtin_stack_address",
    "__builtin_frame_address",
    "__builtin_return_address",
    "__builtin_extract_return_addr",
    "__builtin_frob_return_addr",
    "__builtin_setjmp",
    "__builtin_longjmp",
    "__builtin_eh_return",
    "__builtin_unwind_init",
    "__builtin_init_dwarf_reg_size_table",
    "__builtin_call_with_static_chain",
    "__builtin_set_flt_rounds",
    "__builtin_ia32_ldmxcsr",
    "__builtin_ia32_fxrstor",
    "__builtin_ia32_fxrstor64",
    "__builtin_ia32_xrstor",
    "__builtin_ia32_xrstor64",
    "__builtin_ia32_xrstors",
    "__builtin_ia32_xrstors64",
    "__builtin_ia32_xsetbv",
    "__builtin_ia32_writeeflags_u32",
    "__builtin_ia32_writeeflags_u64",
    "__builtin_ia32_rdfsbase32",
    "__builtin_ia32_rdfsbase64",
    "__builtin_ia32_rdgsbase32",
    "__builtin_ia32_rdgsbase64",
    "__builtin_ia32_wrfsbase32",
    "__builtin_ia32_wrfsbase64",
    "__builtin_ia32_wrgsbase32",
    "__builtin_ia32_wrgsbase64",
    "__builtin_ia32_wrpkru",
    "__builtin_ia32_emms",
    "__builtin_ia32_incsspd",
    "__builtin_ia32_incsspq",
    "__builtin_ia32_rstorssp",
    "__builtin_ia32_xbegin",
    "__builtin_ia32_llwpcb",
    "__builtin_arm_set_fpscr",
    "__builtin_aarch64_set_fpcr",
    "__builtin_arm_wsr",
    "__builtin_arm_wsr64",
    "__builtin_thread_pointer",
    "address_space",
    "__address_space__",
    "__seg_fs",
    "__seg_gs",
};

/// Questions about files.
inline constexpr const char *refusedQuestions[] = {"__has_include", "__has_include_next", "__has_embed"};

} // namespace klineage::gate::opencl
