// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/dtype.h"
#include "core/kernel/expression.h"
#include "core/kernel/surfaces/surface.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace klineage::files {
class TomlWriter;
}

namespace klineage::kernel {

/// A compile-time macro of a candidate: -Dname=value.
struct Tunable {
    std::string name;
    std::int64_t defaultValue = 0;
    std::vector<std::int64_t> values; ///< non-empty; contains defaultValue
};

enum class WorkspaceInit { Poison, Zero };

/// Device scratch memory that the worker allocates.
struct Workspace {
    std::string name;
    DType dtype = DType::F32;
    std::vector<Expression> shape; ///< elements, outermost first
    WorkspaceInit init = WorkspaceInit::Poison;
};

enum class Swizzle { None, B32, B64, B128 };
enum class L2Promotion { None, B64, B128, B256 };
enum class TensorMapFill { Zero, Nan };

/// A tiled TMA descriptor (CUtensorMap), encoded by the worker.
struct TensorMap {
    std::string name;
    std::string tensor;              ///< a tensor of the workload or a workspace
    std::vector<Expression> dims;    ///< outermost first; empty: the tensor's own shape
    std::vector<Expression> strides; ///< elements, outermost first, innermost left out; empty: row-major
    std::vector<Expression> box;     ///< outermost first
    Swizzle swizzle = Swizzle::None;
    L2Promotion l2Promotion = L2Promotion::None;
    TensorMapFill fill = TensorMapFill::Zero;
};

enum class ScalarType { Int32, UInt32, Int64, UInt64, Float32, Float64 };

struct TensorArg {
    std::string name;
}; ///< a tensor or workspace: its device pointer
struct TensorMapArg {
    std::string name;
}; ///< a CUtensorMap by value
struct ScalarArg {
    ScalarType type;
    Expression value;
};
struct LocalArg {
    Expression bytes;
}; ///< OpenCL __local buffer
using LaunchArg = std::variant<TensorArg, TensorMapArg, ScalarArg, LocalArg>;

/// One kernel launch of the plan. Dimensions have 1 to 3 entries, x first.
struct Launch {
    std::string kernel;
    std::optional<Expression> when; ///< skipped when it evaluates to 0
    std::vector<Expression> grid;   ///< blocks / work-groups
    std::vector<Expression> block;  ///< threads / work-items per block
    std::vector<Expression> cluster;
    Expression sharedBytes; ///< dynamic shared memory, bytes
    bool cooperative = false;
    bool programmaticDependent = false;
    // Where the compiler decides about threads and shared memory, and block, cluster and sharedBytes are left out:
    std::optional<Expression> warps;  ///< of the tunables alone, like stages and the boxes of its tensor maps
    std::optional<Expression> stages; ///< of software pipelines
    std::vector<Expression>
        multiplesOf16; ///< scalars among args that are, in every case that it is launched for
    std::vector<LaunchArg> args;
    int line = 0; ///< 1-based line of the [[launch]] header in the file
};

/// A parsed candidate file: device code plus a declarative launch plan. Format: core/kernel/README.md.
struct Candidate {
    Surface surface;
    std::vector<Tunable> tunables;
    std::vector<Workspace> workspaces;
    std::vector<TensorMap> tensorMaps;
    std::vector<Launch> launches;
    std::string source; ///< the whole file, plan comment included: what the compiler gets
    int codeLine = 1;   ///< 1-based line of the first line after the plan comment

    /// Tunables at their defaults, as bindings.
    [[nodiscard]] Bindings defaultTunables() const;
};

inline constexpr std::int64_t usualWarps = 4; ///< of a Launch that leaves them out
inline constexpr std::int64_t usualStages = 3;

inline constexpr std::size_t maxCandidateBytes = std::size_t{4} << 20;

/// The comment that holds a plan, as a text begins with it: "/*klineage" and "*/". It is the language's own way to write comments.
struct PlanComment {
    std::string opening;
    std::string closing;
    friend bool operator==(const PlanComment &, const PlanComment &) = default;
};
[[nodiscard]] PlanComment planCommentOf(Surface surface);
/// Nothing when the text begins with the plan of no known language.
[[nodiscard]] std::optional<PlanComment> planCommentOf(std::string_view text);
/// "'/*klineage'", or what else a candidate may begin with: for "expected …".
[[nodiscard]] std::string planOpenings();

/// Limits on what is read: maxCandidateBytes of source, 256 launches, 64 tunables, workspaces and tensor maps each.
/// fileName is used in messages: "file:line:column: what, and what was expected".
[[nodiscard]] Result<Candidate> parseCandidate(std::string_view text, const std::string &fileName);
[[nodiscard]] Result<Candidate> readCandidate(const std::filesystem::path &path);
/// The one that the file's plan names; that of its extension where no plan can be read. Nothing: no surface has the extension.
[[nodiscard]] std::optional<Surface> surfaceOfCandidate(const std::filesystem::path &path);

/// The arguments of a launch as they stand in `args`: "x", "int M", "local BM * 4".
[[nodiscard]] std::vector<std::string> argumentTexts(const Launch &launch);
/// The plan as the TOML inside the comment (canonical order, defaults left out).
[[nodiscard]] std::string writePlan(const Candidate &candidate);
void writeTunables(files::TomlWriter &writer, const std::vector<Tunable> &tunables); ///< of a plan
/// A candidate file: the plan in the comment of its surface, then the code.
[[nodiscard]] std::string joinCandidate(Surface surface, std::string_view plan, std::string_view code);

/// The device code after the plan comment.
[[nodiscard]] std::string_view codeOf(const Candidate &candidate);

} // namespace klineage::kernel
