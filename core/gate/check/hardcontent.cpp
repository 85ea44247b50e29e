// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/hardcontent.h"

#include "core/base/cipherrandom.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/roles.h"
#include "core/gate/check/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace klineage::gate {

namespace {

using kernel::DType;
using workload::Distribution;
using workload::DistributionKind;

constexpr double littleFlops = 2e8;
constexpr double littleBytes = 16e6;
constexpr double normShare = 0x1p-21;
constexpr double widerRows = 6;
constexpr double largestHalf = 65504;
constexpr int fewestOctaves = 17; // beyond what half precision has
constexpr int mostOctaves = 24;
constexpr double cancellingShare = 0x1p-5;
constexpr std::int64_t fewRows = 3;
constexpr std::uint64_t scaleStream =
    ~std::uint64_t{1}; // content takes streams from 0 up, and shapes the last one

constexpr std::array rowOperators{"softmax_rows", "layernorm_rows",  "rmsnorm_rows", "add_rmsnorm_rows",
                                  "silu",         "sum_rows",        "cumsum_rows",  "sort_rows",
                                  "topk_rows",    "topk_sorted_rows"};

constexpr std::array addingUp{"softmax_rows",     "layernorm_rows", "rmsnorm_rows",
                              "add_rmsnorm_rows", "sum_rows",       "cumsum_rows"};

constexpr std::array selections{"sort_rows", "topk_rows", "topk_sorted_rows"};
constexpr int manyCopies = 32;

/// Rows that lie here as a whole: their exponentials are all zero in single precision, even 80 above.
constexpr double farBelow = -200;
constexpr std::array shiftInvariant{"softmax_rows"};

constexpr std::array attentionOperators{"attention_varlen", "attention_varlen_causal"};

template <typename List>
bool contains(const List &list, std::string_view word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool isProduct(const std::string &oracle)
{
    return oracle.starts_with("matmul_");
}

/// That plays this role in the oracle.
const workload::Tensor *tensorOf(const workload::Workload &workload, const std::string &role)
{
    const auto argument = workload.oracleArgs.find(role);
    return argument == workload.oracleArgs.end() ? nullptr : workload.findTensor(argument->second);
}

bool hasKind(const workload::Workload &workload, const workload::Case &c, DistributionKind kind)
{
    return std::any_of(workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
        return tensor.role == workload::Role::Input && workload.distributionOf(tensor, c).kind == kind;
    });
}

/// Cases whose inputs are filled otherwise than the timed one's, offsets aside.
std::vector<const workload::Case *> hardCases(const workload::Workload &workload)
{
    const workload::Case &timed = workload.cases.front();
    std::vector<const workload::Case *> cases;
    for (const workload::Case &c : workload.cases) {
        const bool differs = std::any_of(
            workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
                const Distribution &mine = workload.distributionOf(tensor, c);
                return tensor.role == workload::Role::Input && mine.kind != DistributionKind::Offsets
                       && !(mine == workload.distributionOf(tensor, timed));
            });
        if ((!c.exact || timed.exact) && differs)
            cases.push_back(&c);
    }
    return cases;
}

/// The largest of the sums of squares of the rows of a matrix (its last dimension), or of its columns (the one before), over all matrices.
double largestSquares(const HostTensor &tensor, bool columns)
{
    const std::vector<float> values = toFloats(tensor);
    const std::size_t across = tensor.rowLength();
    const std::size_t down =
        tensor.shape.size() < 2 ? 1 : static_cast<std::size_t>(tensor.shape[tensor.shape.size() - 2]);
    double largest = 0;
    std::vector<double> sums(columns ? across : 1);
    for (std::size_t row = 0; row < values.size() / across; ++row) {
        if (!columns || row % down == 0)
            std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t i = 0; i < across; ++i) {
            const double value = values[row * across + i];
            sums[columns ? i : 0] += value * value;
        }
        if (!columns || row % down + 1 == down)
            largest = std::max(largest, *std::max_element(sums.begin(), sums.end()));
    }
    return largest;
}

/// Beyond which no element can be, by Cauchy and Schwarz; nothing for what is no product.
std::optional<double> largestProduct(const workload::Workload &workload, const CaseInstance &instance)
{
    OracleRoles roles(workload, instance.tensors);
    if (isProduct(workload.oracle)) {
        const HostTensor *a = roles["a"];
        const HostTensor *b = roles["b"];
        if (!a || !b)
            return std::nullopt;
        return std::sqrt(largestSquares(*a, false) * largestSquares(*b, workload.oracle != "matmul_nt"));
    }
    if (workload.oracle != "conv2d_nhwc")
        return std::nullopt;
    const HostTensor *data = roles["data"];
    const HostTensor *weight = roles["weight"];
    if (!data || !weight)
        return std::nullopt;
    // Of a window: as many pixels as there are, each at most the largest.
    const double pixels = static_cast<double>(weight->shape.front()) / static_cast<double>(data->rowLength());
    return std::sqrt(pixels * largestSquares(*data, false) * largestSquares(*weight, true));
}

/// "timed (as large, masked)"
void nameAfter(workload::Case &content, const std::vector<const workload::Case *> &cases)
{
    std::string names;
    for (const workload::Case *c : cases)
        names += (names.empty() ? "" : ", ") + c->name;
    content.name += " (as " + names + ")";
}

/// Each row as one of the cases has it, or, about half of them, as the timed one.
std::optional<workload::Case> allCases(const workload::Workload &workload)
{
    workload::Case hard = workload.cases.front();
    const std::vector<const workload::Case *> cases = hardCases(workload);
    if (cases.empty())
        return std::nullopt;
    nameAfter(hard, cases);
    for (const workload::Tensor &tensor : workload.tensors) {
        const Distribution &ordinary = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role != workload::Role::Input || ordinary.kind == DistributionKind::Offsets)
            continue;
        Distribution all;
        for (const workload::Case *c : cases)
            all.parts.push_back(workload.distributionOf(tensor, *c));
        if (Distribution low = ordinary;
            contains(shiftInvariant, workload.oracle) && low.kind == DistributionKind::Normal) {
            low.mean = farBelow;
            all.parts.push_back(low);
        }
        all.parts.insert(all.parts.end(), all.parts.size(), ordinary);
        hard.distributions[tensor.name] = all;
    }
    return hard;
}

/// Few elements of few rows as the cases have them, or, of selections, alike: who looks at others, be it in all rows, does not see them.
/// Where there is little work several such contents, the first of one piece.
std::vector<workload::Case> fewHard(const workload::Workload &workload)
{
    const std::optional<workload::Case> all = allCases(workload);
    if (!all)
        return {};
    std::vector<workload::Case> contents;
    const auto add = [&](int pieces, bool copies, const std::string &what) {
        workload::Case &hard = contents.emplace_back(*all);
        hard.name += ", " + what + std::to_string(pieces) + (pieces == 1 ? " piece" : " pieces");
        for (auto &[name, distribution] : hard.distributions) {
            if (distribution.parts.empty())
                continue;
            distribution.pieces = pieces;
            distribution.drawing = static_cast<int>(contents.size());
            distribution.copies = copies;
        }
    };
    const bool little = isLittleWork(workload);
    const auto cases = static_cast<int>(hardCases(workload).size());
    for (const int pieces :
         little ? std::vector{1, 1, cases, 2 * cases, 2 * cases, 4 * cases} : std::vector{1})
        add(pieces, false, "in ");
    for (int i = 0; little && contains(selections, workload.oracle) && i < 2; ++i)
        add(manyCopies, true, "copies in ");
    return contents;
}

std::optional<workload::Case> unevenSequences(const workload::Workload &workload,
                                              std::optional<workload::Case> hard)
{
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution offsets = workload.distributionOf(tensor, workload.cases.front());
        if (!hard || tensor.role != workload::Role::Input || offsets.kind != DistributionKind::Offsets)
            continue;
        offsets.even = false;
        hard->distributions[tensor.name] = offsets;
    }
    return hard;
}

/// Weights so small, but for one token in sixteen, that a head whose gates are open keeps what it has over the whole length.
std::optional<workload::Case> longMemory(const workload::Workload &workload)
{
    const workload::Tensor *weights = tensorOf(workload, "beta");
    if (!weights)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    const Distribution &ordinary = workload.distributionOf(*weights, hard);
    if (ordinary.kind != DistributionKind::Sigmoid)
        return std::nullopt;
    Distribution small = ordinary;
    small.mean = -5;
    Distribution all;
    all.parts.assign(15, small);
    all.parts.push_back(ordinary);
    hard.distributions[weights->name] = all;
    hard.name += " (long memory)";
    return hard;
}

/// One key in eight as the queries of such content are, queries as usual: who looks at queries, or at the first keys, does not see it.
std::optional<workload::Case> largeKeys(const workload::Workload &workload,
                                        std::optional<workload::Case> hard)
{
    constexpr std::size_t ordinaryShare = 7;
    const workload::Tensor *queries = tensorOf(workload, "q");
    const workload::Tensor *keys = tensorOf(workload, "k");
    if (!hard || !queries || !keys)
        return std::nullopt;
    std::swap(hard->distributions[queries->name], hard->distributions[keys->name]);
    std::vector<Distribution> &parts = hard->distributions[keys->name].parts;
    const std::size_t large = parts.size() / 2; // as many are ordinary
    if (large == 0)
        return std::nullopt;
    parts.insert(parts.end(), (ordinaryShare - 1) * large, parts.back());
    hard->name += ", keys as queries";
    return hard;
}

/// Keys that resemble each other: what lies across them is never corrected, and so kept over the whole length.
std::optional<workload::Case> alikeKeys(const workload::Workload &workload)
{
    const workload::Tensor *keys = tensorOf(workload, "k");
    if (!keys)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    Distribution alike = workload.distributionOf(*keys, hard);
    if (alike.kind != DistributionKind::UnitRows)
        return std::nullopt;
    alike.mean = 1;
    hard.distributions[keys->name] = alike;
    hard.name += " (alike keys)";
    return hard;
}

/// Operands of eight bits as large as they can be, and one so small that most of it is subnormal; where the result has room for that.
std::vector<workload::Case> scaledBytes(const workload::Workload &workload, std::uint64_t seed)
{
    constexpr double large = 0x1p7; // a few in ten thousand are cut off
    constexpr double small = 0x1p-7;
    const auto isByte = [&](const char *role) {
        const workload::Tensor *operand = tensorOf(workload, role);
        return operand && kernel::sizeOf(operand->dtype) == 1 && kernel::isFloat(operand->dtype);
    };
    const bool hasRoom =
        std::none_of(workload.tensors.begin(), workload.tensors.end(), [](const auto &tensor) {
            return tensor.role == workload::Role::Output
                   && (tensor.dtype == DType::F16 || kernel::sizeOf(tensor.dtype) < 2);
        });
    if (!isByte("a") || !isByte("b") || !hasRoom)
        return {};
    std::vector<workload::Case> contents;
    const auto add = [&](double first, double second, const char *what) {
        workload::Case &hard = contents.emplace_back(workload.cases.front());
        hard.name += what;
        for (const auto &[role, factor] : {std::pair{"a", first}, {"b", second}}) {
            const workload::Tensor *operand = tensorOf(workload, role);
            hard.distributions[operand->name] = workload.distributionOf(*operand, workload.cases.front());
            hard.distributions[operand->name].factor = factor;
        }
    };
    add(large, large, " (large)");
    CipherRandom random(seed, scaleStream);
    if (random.bits(2) % 2 == 0)
        add(small, large, " (a subnormal)");
    else
        add(large, small, " (b subnormal)");
    return contents;
}

bool holdsManyScales(DType dtype)
{
    return dtype == DType::F32 || dtype == DType::TF32 || dtype == DType::BF16 || dtype == DType::F64;
}

/// One operand times a power of two, the other divided by it; 1 where a tensor's type holds few of them.
double factorOf(const workload::Workload &workload, const workload::Tensor &tensor, std::uint64_t seed,
                bool other = false)
{
    if (!std::all_of(workload.tensors.begin(), workload.tensors.end(),
                     [](const auto &each) { return holdsManyScales(each.dtype); }))
        return 1;
    CipherRandom random(seed, scaleStream);
    const int octaves = fewestOctaves + static_cast<int>(random.bits(0) % (mostOctaves - fewestOctaves + 1));
    const int first = (random.bits(1) % 2 == 0) != other ? octaves : -octaves;
    for (const auto &[role, sign] : {std::pair{"a", 1}, {"b", -1}, {"data", 1}, {"weight", -1}}) {
        const auto argument = workload.oracleArgs.find(role);
        if (argument != workload.oracleArgs.end() && argument->second == tensor.name)
            return std::exp2(sign * first);
    }
    return 1;
}

/// Half of the rows mixed; both operands times a power of two, so that their product is about what it was.
std::optional<workload::Case> mixedOperands(const workload::Workload &workload, std::uint64_t seed)
{
    workload::Case hard = workload.cases.front();
    std::vector<const workload::Case *> cases = hardCases(workload);
    std::erase_if(cases,
                  [&](const workload::Case *c) { return !hasKind(workload, *c, DistributionKind::Mixed); });
    if (cases.empty())
        return std::nullopt;
    cases.resize(1);
    nameAfter(hard, cases);
    for (const workload::Tensor &tensor : workload.tensors) {
        const Distribution &ordinary = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role != workload::Role::Input || ordinary.kind == DistributionKind::Offsets)
            continue;
        Distribution all;
        all.parts = {workload.distributionOf(tensor, *cases.front()), ordinary};
        for (Distribution &part : all.parts)
            part.factor = factorOf(workload, tensor, seed);
        hard.distributions[tensor.name] = all;
    }
    return hard;
}

/// Sums whose terms cancel, but for a thirty-second of an element: they are as small as bf16 can tell, and what a sum of fewer bits loses on the
/// way is as large as before. No element or row looks other than ordinary. Of operands in bf16 alone: single precision itself would lose
/// too much, and half precision's tolerance is fine enough already.
std::optional<workload::Case> cancellingSums(const workload::Workload &workload)
{
    workload::Case hard = workload.cases.front();
    hard.name += " (cancelling)";
    const Distribution usual;
    int operands = 0;
    for (const workload::Tensor &tensor : workload.tensors) {
        const bool isOffsets =
            workload.distributionOf(tensor, workload.cases.front()).kind == DistributionKind::Offsets;
        if (tensor.dtype != DType::BF16 && !isOffsets)
            return std::nullopt;
        for (const char *role : {"a", "b"}) {
            const auto argument = workload.oracleArgs.find(role);
            if (argument == workload.oracleArgs.end() || argument->second != tensor.name)
                continue;
            Distribution d = workload.distributionOf(tensor, workload.cases.front());
            if (!(d == usual) || tensor.shape.size() < 2)
                return std::nullopt;
            d.cancels = cancellingShare;
            d.isSecond = *role == 'b';
            d.sumsDown = d.isSecond && workload.oracle != "matmul_nt";
            hard.distributions[tensor.name] = d;
            ++operands;
        }
    }
    return operands == 2 ? std::optional(std::move(hard)) : std::nullopt;
}

/// Terms of a sum of the timed case; nothing where that is not known.
std::optional<double> termsOf(const workload::Workload &workload)
{
    const workload::Case &timed = workload.cases.front();
    if (workload.tolerance.reduction) {
        const auto terms = workload.tolerance.reduction->evaluateReal(workload.bindings(timed));
        return terms ? std::optional(*terms) : std::nullopt;
    }
    const workload::Tensor *a = tensorOf(workload, "a");
    const auto shape =
        a ? workload.shapeOf(*a, timed) : Result<std::vector<std::int64_t>>(tl::unexpected(Error{}));
    return shape && !shape->empty() ? std::optional(static_cast<double>(shape->back())) : std::nullopt;
}

/// The largest of the powers of two up to which a type has all whole numbers; at most 2^12.
double wholeUpTo(DType dtype)
{
    switch (dtype) {
    case DType::BF16:
        return 256;
    case DType::F16:
        return 2048;
    default:
        return 4096;
    }
}

/// Whole numbers as large as they can be for sums of so many to be exact, and that times a power of two; where an exact case has such.
std::optional<workload::Case> wholeNumbers(const workload::Workload &workload, std::uint64_t seed)
{
    const auto terms = termsOf(workload);
    for (const workload::Case &c : workload.cases) {
        if (!terms || !c.exact || !hasKind(workload, c, DistributionKind::Integers))
            continue;
        workload::Case hard = workload.cases.front();
        hard.name += " (as " + c.name + ")";
        hard.exact = true;
        // Sums of so many random numbers stay below a third of this, with what adding rows first makes of them.
        const double room = 0x1p24 / (16 * std::sqrt(*terms));
        const double each = std::exp2(std::floor(0.5 * std::log2(room)));
        double ofCase = 1;
        double ofTypes = 1;
        for (const workload::Tensor &tensor : workload.tensors) {
            const Distribution &d = workload.distributionOf(tensor, c);
            if (tensor.role != workload::Role::Input || tensor.shape.size() < 2)
                continue;
            ofCase *= std::max(std::abs(d.low), std::abs(d.high));
            ofTypes *= std::min(each, wholeUpTo(tensor.dtype));
        }
        const bool wider = ofTypes > ofCase || ofCase > room;
        for (const workload::Tensor &tensor : workload.tensors) {
            if (tensor.role != workload::Role::Input)
                continue;
            Distribution d = workload.distributionOf(tensor, c);
            // Tensor cores keep 14 bits of sums of eight-bit numbers: no more than the case itself can ask.
            if (d.kind != DistributionKind::Integers || kernel::sizeOf(tensor.dtype) < 2)
                return std::nullopt;
            if (tensor.shape.size() > 1) { // an operand
                if (wider) {
                    d.high = std::min(each, wholeUpTo(tensor.dtype));
                    d.low = -d.high;
                }
                d.factor = factorOf(workload, tensor, seed, true); // the other way round than mixed
            }
            hard.distributions[tensor.name] = d;
        }
        return hard;
    }
    return std::nullopt;
}

} // namespace

std::vector<workload::Case> hardContents(const workload::Workload &workload, std::uint64_t seed)
{
    std::vector<workload::Case> contents;
    const auto add = [&](std::optional<workload::Case> content) {
        if (content)
            contents.push_back(std::move(*content));
    };
    if (isProduct(workload.oracle) || workload.oracle == "conv2d_nhwc") {
        add(cancellingSums(workload));
        add(mixedOperands(workload, seed));
        add(wholeNumbers(workload, seed));
        for (workload::Case &content : scaledBytes(workload, seed))
            contents.push_back(std::move(content));
    } else if (contains(rowOperators, workload.oracle)) {
        add(allCases(workload));
        for (workload::Case &content : fewHard(workload))
            contents.push_back(std::move(content));
    } else if (contains(attentionOperators, workload.oracle)) {
        add(unevenSequences(workload, allCases(workload)));
        add(largeKeys(workload, unevenSequences(workload, allCases(workload))));
    } else if (workload.oracle == "gated_delta_rule") {
        add(longMemory(workload));
        add(alikeKeys(workload));
    }
    return contents;
}

std::optional<workload::Case> longerRows(const workload::Workload &workload, std::uint64_t seed)
{
    if (!contains(rowOperators, workload.oracle))
        return std::nullopt;
    const auto input = std::find_if(workload.tensors.begin(), workload.tensors.end(),
                                    [](const auto &tensor) { return tensor.role == workload::Role::Input; });
    if (input == workload.tensors.end() || input->shape.empty())
        return std::nullopt;
    const std::string axis = input->shape.back().text();
    const workload::Case *model = nullptr;
    std::int64_t longest = 0;
    for (const workload::Case &c : workload.cases) {
        const auto drawn = c.drawn.find(axis);
        if (drawn != c.drawn.end() && (!model || drawn->second.high > model->drawn.at(axis).high))
            model = &c;
        if (drawn != c.drawn.end())
            longest = std::max(longest, drawn->second.high);
        else if (const auto fixed = c.axes.find(axis); fixed != c.axes.end())
            longest = std::max(longest, fixed->second);
    }
    if (!model)
        return std::nullopt;
    workload::Case longer = *model;
    for (auto &[name, range] : longer.drawn) {
        if (name != axis) {
            range.high = std::min(range.high, range.low + fewRows * range.step);
            continue;
        }
        range.low += (longest - range.low + range.step) / range.step * range.step;
        range.high = range.low + 3 * longest / range.step * range.step;
    }
    longer.name = "longer rows";
    workload::Case drawn = drawCase(longer, seed);
    if (contains(addingUp, workload.oracle))
        drawn.stretch = static_cast<double>(drawn.axes.at(axis)) / static_cast<double>(longest);
    return drawn;
}

bool isLittleWork(const workload::Workload &workload)
{
    const kernel::Bindings bindings = workload.bindings(workload.cases.front());
    return workload.flops.evaluateReal(bindings).value_or(0) <= littleFlops
           && workload.bytes.evaluateReal(bindings).value_or(0) <= littleBytes;
}

bool overflows(const CaseInstance &instance)
{
    for (const HostTensor &tensor : instance.tensors) {
        const auto expected = instance.expected.find(tensor.name);
        if (expected == instance.expected.end() || tensor.dtype != kernel::DType::F16)
            continue;
        for (std::size_t i = 0; i < expected->second.size(); ++i) {
            if (const double value = expected->second[i];
                std::isfinite(value) && std::abs(value) > largestHalf)
                return true;
        }
    }
    return false;
}

void widenTolerance(const workload::Workload &workload, const workload::Case &c, CaseInstance &instance)
{
    if (instance.tolerance.exact)
        return;
    const bool patched = std::any_of(c.distributions.begin(), c.distributions.end(),
                                     [](const auto &entry) { return !entry.second.parts.empty(); });
    if (patched)
        instance.tolerance.atol *= widerRows;
    if (!hasKind(workload, c, DistributionKind::Mixed))
        return;
    const auto largest = largestProduct(workload, instance);
    for (const auto &[name, expected] : instance.expected) {
        const double rms = rootMeanSquare(expected);
        if (largest && rms > 0)
            instance.tolerance.atol = std::max(instance.tolerance.atol, normShare * *largest / rms);
    }
}

} // namespace klineage::gate
