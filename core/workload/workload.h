// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/candidate.h"
#include "core/kernel/dtype.h"
#include "core/kernel/expression.h"
#include "core/kernel/plan.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace klineage::workload {

enum class Role { Input, Output };

enum class DistributionKind {
    Normal,      ///< mean, stddev
    Uniform,     ///< in [low, high)
    Bits,        ///< 0 or 1 with equal chance: sums are exact, so any lost term shows
    Large,       ///< normal times `scale` (default 1e4): overflows an unguarded exp
    NegInfinity, ///< normal, a `fraction` of elements is -inf, at least one finite element a row
    Integers,    ///< whole numbers from low to high, both included: sums can be exact, so that lost bits show
    Offsets,     ///< one-dimensional, of integers: 0, then ascending by at least 1, up to the axis `end`
    UnitRows,    ///< normal, each row divided by √(its sum of squares + `epsilon`)
    Sigmoid,     ///< 1 / (1 + exp(−normal))
    Mixed, ///< normal times a scale of its row and block; few elements are `scale` times more; see README.md
    LogGates, ///< log(sigmoid(normal)) / `divisor` in ⌈`share` · row length⌉ random columns, 0 in the others
};

/// How an input is filled. Unused parameters keep their defaults.
struct Distribution {
    DistributionKind kind = DistributionKind::Normal;
    double mean = 0.25; ///< not zero, so that "mean of zero-mean data" cannot pass
    double stddev = 1.0;
    double low = 0.0;
    double high = 1.0;
    double scale = 1e4;
    double fraction = 0.25;
    double epsilon = 1e-6; ///< UnitRows
    double share = 0.75;   ///< LogGates: (0, 1]
    double spread = 3.0;   ///< Mixed: octaves that a row's scale may be above or below 1; at most 16
    double outliers = 0;   ///< Mixed: the share of elements that are multiplied by `scale`; at most 1/4
    double tails = 0;      ///< Mixed: the share of rows that end in −∞; at most 1
    double divisor = 16.0; ///< LogGates
    std::string end;       ///< Offsets: an axis, the last element
    bool even = false;     ///< Offsets: steps differ by at most 1; otherwise they are random
    double factor = 1;     ///< Not in files: of all that the above gives, a power of two
    /// Not in files, of an operand of a product: the terms of each sum come in pairs that cancel, but for this share of an element.
    double cancels = 0;
    bool isNear = false;   ///< with `pair`: both terms are of the same sixteen
    bool isSecond = false; ///< with `cancels` and `pair`: of the two operands
    bool sumsDown =
        false; ///< with `cancels`, `spike` and `pair`: the sum runs over the dimension before the last
    std::int64_t terms = 0; ///< with these: after so many the same come again; 0: all of the dimension
    /// Not in files, of an operand of a product: one term of each sum, the same for all of a case, is multiplied by it. 0: none is.
    double spike = 0;
    /// Not in files, of an operand of a product: in one row in sixteen of the first one two terms are some so many times as large and cancel; the
    /// second one has the same at both. 0: none.
    double pair = 0;
    /// Not in files, of an operand of a product: the terms of a sum come in blocks, and each element of a block is off by so much, up or down, so that a
    /// sum grows and shrinks on the way and ends as it would without. 0: none is.
    double drift = 0;
    std::int64_t classRows =
        0; ///< with `drift`, of a tensor that is both operands: so many rows are as of the first, then as many of the second
    /// Not in files, of an operand of a product: every second term is so many octaves smaller in one of the two, and up to 13 larger in the other. 0:
    /// none.
    int termOctaves = 0;
    /// Not in files. When there are some, each row is filled as one of these says (row i of every tensor of a case as the same one), and
    /// nothing else here counts.
    std::vector<Distribution> parts{};
    /// With `parts`: all is as the last one says, but for so many pieces of rows, each of which is as one of the first half; 0: as above.
    int pieces = 0;
    int drawing = 0; ///< with `pieces`: another one, other pieces
    bool copies =
        false; ///< with `pieces`: each is one element of its row at many places of it, whatever the parts say
    /// With `parts`, of tensors [batch, token, head, …]: one of so many equal groups of heads is as the first part says, over a stretch of
    /// tokens, and all else as the last one; the same stretch and group for all tensors of a case. 0: as above.
    std::int64_t headGroups = 0;
    /// Not in files, of tensors whose rows are heads: what the elements of the last head are multiplied by, after all of the above.
    double lastHead = 1;
    bool allBits = false; ///< Not in files, of F64: the bits below those of single precision are drawn too
    double lift =
        0; ///< Not in files: about this is added to one row in sixteen, or taken from it, after all of the above

    friend bool operator==(const Distribution &, const Distribution &) = default;
};

/// A dense row-major tensor of the operator.
struct Tensor {
    std::string name;
    Role role = Role::Input;
    kernel::DType dtype = kernel::DType::F32;
    std::vector<kernel::Expression> shape; ///< over axes, outermost first
    Distribution distribution;             ///< inputs only
    std::string description;
};

/// An axis that is drawn anew for each trial, so that no candidate can know it: low, low + step, … up to high.
struct AxisRange {
    std::int64_t low = 1;
    std::int64_t high = 1;
    std::int64_t step = 1;

    /// How many values there are.
    [[nodiscard]] std::int64_t count() const { return (high - low) / step + 1; }
    friend bool operator==(const AxisRange &, const AxisRange &) = default;
};

/// One shape (and optionally other input distributions). The first case is the timed one; all are checked.
struct Case {
    std::string name;
    std::map<std::string, std::int64_t> axes;          ///< all of them; a drawn one has its lowest value here
    std::map<std::string, AxisRange> drawn;            ///< not in the timed case
    std::map<std::string, Distribution> distributions; ///< overrides by tensor name
    bool exact = false; ///< outputs must equal the oracle rounded to their type, whatever the tolerance
    bool blended =
        false; ///< Not in files: inputs that nothing is done to are made of two contents, as those of timed runs are
    double stretch =
        1; ///< sums are so many times as long as in any case of the file: all limits are multiplied by √stretch
};

/// The case with each drawn axis at the index-th of its values (modulo their number, by axis), and so without drawn axes.
/// Its name says which: "hidden (M = 17, N = 40)".
[[nodiscard]] Case drawnAt(const Case &c, const std::map<std::string, std::uint64_t> &indices);

/// Error limits; both metrics must hold for every output. Table: core/workload/README.md, "Tolerances".
struct Tolerance {
    double relL2 = 1e-5;  ///< ‖out − oracle‖₂ / ‖oracle‖₂
    double rtol = 1.3e-6; ///< elementwise: |out − oracle| ≤ atol·RMS(oracle) + rtol·|oracle|
    double atol = 1e-5;   ///< in units of the oracle's RMS
    double rowSum = 0.0;  ///< when > 0: every row of the output sums to 1 within this
    std::string reason;   ///< required when looser than the class default
    /// Terms of the sum behind one output element, over axes: atol is multiplied by √(reduction / 1024).
    /// Empty: pointwise.
    std::optional<kernel::Expression> reduction;
    bool exact = false; ///< of a case: the other limits are 0 and the oracle is rounded to the output's type
    /// The definition's steps may round what lies between them to the operands' type (weights of attention, a hidden layer): a gain may come
    /// from that.
    bool roundsBetween = false;
    /// Not in files: ‖out − oracle‖₂ / ‖oracle‖₂ as it was before results were rounded to their type (core/gate/check/comparison.h); infinite:
    /// that has no limit, but is to be known; 0: it says nothing.
    double beforeRounding = 0;
};

/// The limits of the error class of an output of this type; integers must be exact. Table:
/// core/workload/README.md, "Tolerances".
[[nodiscard]] Tolerance classTolerance(kernel::DType dtype);

/// A vendor routine that computes the same operator; loaded at run time.
struct Reference {
    kernel::DeviceKind device = kernel::DeviceKind::OpenCl; ///< the key 'surface'
    std::string provider;                    ///< "openblas", "cublas", "cudnn", "torch"; see providerWords
    std::string op;                          ///< "sgemm_nn", "softmax", "gemm_nt"
    std::map<std::string, std::string> args; ///< role in the op -> tensor or axis name
};

/// What a Python oracle is handed.
enum class PythonArrays {
    Numpy, ///< numpy arrays
    Torch, ///< torch tensors on the CPU
    Lists, ///< nested lists of Python's own numbers: needs nothing but python3
};

/// A function of the workload's own that says what the outputs are. It runs in a confined process.
struct PythonOracle {
    std::string source; ///< Python; empty: `file` was not read
    std::string file;   ///< where the source was read from, beside workload.toml; may be empty
    std::string function = "run";
    PythonArrays arrays = PythonArrays::Numpy;
    bool declared = false; ///< floating-point inputs come in their tensor's type; otherwise in double
    /// What it is called with, in order: names of inputs, numbers, "true" and "false". Empty: the inputs as declared.
    std::vector<std::string> arguments;

    friend bool operator==(const PythonOracle &, const PythonOracle &) = default;
};

inline constexpr std::size_t maxOracleSourceBytes = std::size_t{256} << 10;

/// An operator to optimize. File: workloads/<name>/workload.toml, schema in core/workload/README.md.
struct Workload {
    std::string name;
    std::string title;
    std::string description;
    std::vector<std::string> axes; ///< declared order
    std::vector<Tensor> tensors;   ///< declared order; at least one input and one output
    std::vector<Case> cases;       ///< front() is timed
    std::string oracle;            ///< name of a built-in oracle, see oracle.h; "python" when it is `python`
    std::map<std::string, std::string> oracleArgs;
    std::optional<PythonOracle> python; ///< in place of a built-in one
    Tolerance tolerance;
    kernel::Expression flops; ///< floating-point operations of one run, as the definition counts them
    /// What the fastest known algorithm needs (Winograd's for a convolution); none: as many as the definition.
    std::optional<kernel::Expression> fewestFlops;
    kernel::Expression bytes; ///< fewest bytes to and from device memory of one run
    std::vector<Reference> references;
    std::filesystem::path directory; ///< where it was read from; not part of the file

    [[nodiscard]] const Tensor *findTensor(std::string_view name) const;
    [[nodiscard]] const Case *findCase(std::string_view name) const;
    [[nodiscard]] kernel::Bindings bindings(const Case &c) const;
    /// What a run cannot do without, for bounds: `fewestFlops`, else `flops`.
    [[nodiscard]] const kernel::Expression &leastFlops() const { return fewestFlops ? *fewestFlops : flops; }
    /// Shape of a tensor in a case; fails when an extent is not in [1, 2^31).
    [[nodiscard]] Result<std::vector<std::int64_t>> shapeOf(const Tensor &tensor, const Case &c) const;
    /// All tensors in declared order with their shapes in a case, as kernel::resolvePlan() takes them.
    [[nodiscard]] Result<std::vector<kernel::ResolvedBuffer>> buffersOf(const Case &c) const;
    /// The limits to use in a case: `tolerance` with `reduction` worked into atol; zeros in an exact one.
    [[nodiscard]] Result<Tolerance> toleranceFor(const Case &c) const;
    /// What to fill an input with in a case.
    [[nodiscard]] const Distribution &distributionOf(const Tensor &tensor, const Case &c) const;
};

[[nodiscard]] Result<Workload> parseWorkload(std::string_view text, const std::string &fileName);
/// Reads directory/workload.toml, and the file of a Python oracle.
[[nodiscard]] Result<Workload> readWorkload(const std::filesystem::path &directory);
/// The source of a Python oracle is written into the text when it is there, so that the text is the whole workload.
[[nodiscard]] std::string writeWorkload(const Workload &workload);

} // namespace klineage::workload
