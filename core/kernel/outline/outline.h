// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::kernel {

/// A parameter of a kernel function.
struct KernelParameter {
    enum class Kind {
        Pointer,   ///< to device memory
        Local,     ///< OpenCL: to __local memory
        Scalar,    ///< of a type that a plan can pass
        TensorMap, ///< CUtensorMap by value
        Other      ///< a plan cannot pass it
    };
    std::string name; ///< may be empty
    std::string type; ///< as it is written, without the name: "const float *"
    Kind kind = Kind::Other;
    bool isConst = false; ///< what it points to
    std::optional<DType>
        element; ///< of what it points to; nothing: not known, as of void * or a typedef of elsewhere
    std::optional<ScalarType> scalar; ///< of Kind::Scalar
};

/// A function that the host can launch.
struct KernelFunction {
    std::string name;
    std::vector<KernelParameter> parameters;
    int line = 1;        ///< in the code, from 1
    std::string problem; ///< why a plan cannot launch it by its name, a sentence; empty: it can
    std::array<std::int64_t, 3> block{0, 0, 0}; ///< that its attributes ask for, x first; 0: nothing is said
    int gridRank = 1;                           ///< dimensions of blocks, or of global ids, that it uses
    int blockRank = 1;                          ///< dimensions of threads in a block that it uses
    bool isByElement =
        false; ///< x counts threads of all blocks (get_global_id, blockIdx.x * blockDim.x); else blocks
    bool usesDynamicShared = false;   ///< CUDA: extern __shared__
    std::set<std::string> loopLimits; ///< words in the heads of its for loops
};

/// `#define NAME 64`: what could be a tunable.
struct SourceConstant {
    std::string name;
    std::int64_t value = 0;
    int line = 1;
    std::size_t begin = 0;  ///< of the directive, bytes …
    std::size_t end = 0;    ///< … and past it
    bool isGuarded = false; ///< by `#ifndef NAME`: a macro of the command line wins already
};

/// What can be read from device code without compiling it.
struct SourceOutline {
    std::vector<KernelFunction> kernels;   ///< in the order of the code, each name once
    std::vector<SourceConstant> constants; ///< the same
    std::vector<std::string> notices;      ///< what was left out, whole sentences
};

inline constexpr std::size_t maxOutlineKernels = 64;
inline constexpr std::size_t maxOutlineParameters = 64;
inline constexpr std::size_t maxOutlineConstants = 64;

/// Reads declarations as they stand: macros that stand for a kernel's keyword or a type, typedefs and `using` are followed, other macros
/// and templates are not. The code may be anything: at most maxCandidateBytes of it are read, in linear time. The language is that of the
/// surface; one that is not C-like has no kernels.
[[nodiscard]] SourceOutline outlineSource(std::string_view code, Surface surface);

/// The code with the named constants guarded by `#ifndef`, so that a tunable of that name wins. Names that it does not define, or guards
/// already, change nothing.
[[nodiscard]] std::string withTunables(std::string_view code, const std::set<std::string> &names,
                                       Surface surface);

} // namespace klineage::kernel
