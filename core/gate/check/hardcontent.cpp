// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/hardcontent.h"

#include "core/base/cipherrandom.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/hardparts.h"
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

constexpr double littleFlops = 3e8;
constexpr double littleBytes = 16e6;
constexpr double modestFlops = 1e10;
constexpr double modestBytes = 128e6;
constexpr double normShare = 0x1p-21;
constexpr double widerRows = 6;
constexpr double largestHalf = 65504;
constexpr double besideALargeTerm = 1e-2; ///< half of what it costs to lose all terms but the large one
constexpr std::int64_t fewRows = 3;

constexpr std::array rowOperators{"softmax_rows", "layernorm_rows",  "rmsnorm_rows", "add_rmsnorm_rows",
                                  "silu",         "sum_rows",        "cumsum_rows",  "sort_rows",
                                  "topk_rows",    "topk_sorted_rows"};

constexpr std::array addingUp{"softmax_rows",     "layernorm_rows", "rmsnorm_rows",
                              "add_rmsnorm_rows", "sum_rows",       "cumsum_rows"};

constexpr int manyCopies = 32;

/// Rows that lie so far below as a whole that their exponentials are all zero in single precision, or nearly; and rows that lie so many
/// deviations from zero that a variance of one pass over squares is not exact. How far is drawn.
constexpr double leastBelow = 88;
constexpr double mostBelow = 300;
constexpr double leastOffset = 12;
constexpr double mostOffset = 100;
constexpr std::array shiftInvariant{"softmax_rows"};
constexpr std::array centring{"layernorm_rows"};

constexpr double largeValues = 0x1p5;
constexpr double largePair =
    0x1p12; ///< in half precision a score is off by half, in single by nothing that counts

constexpr std::array attentionOperators{"attention_varlen", "attention_varlen_causal"};

bool isProduct(const std::string &oracle)
{
    return oracle.starts_with("matmul_");
}

bool isWithin(const workload::Workload &workload, double flops, double bytes)
{
    const kernel::Bindings bindings = workload.bindings(workload.cases.front());
    return workload.flops.evaluateReal(bindings).value_or(0) <= flops
           && workload.bytes.evaluateReal(bindings).value_or(0) <= bytes;
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

/// Where rows of an operator whose results do not change with it lie besides; nothing: where its cases have them.
std::optional<double> besides(const workload::Workload &workload, const Distribution &ordinary,
                              std::uint64_t seed)
{
    if (ordinary.kind != DistributionKind::Normal)
        return std::nullopt;
    CipherRandom random(seed, scaleStream);
    const double drawn = random.uniform(8);
    if (contains(shiftInvariant, workload.oracle))
        return -(leastBelow + (mostBelow - leastBelow) * drawn * drawn);
    if (contains(centring, workload.oracle))
        return ordinary.stddev * leastOffset * std::pow(mostOffset / leastOffset, drawn);
    return std::nullopt;
}

/// Each row as one of the cases has it, or, about half of them, as the timed one.
std::optional<workload::Case> allCases(const workload::Workload &workload, std::uint64_t seed)
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
        if (const auto mean = besides(workload, ordinary, seed);
            mean && (*mean < 0 || holdsManyScales(tensor.dtype))) {
            all.parts.push_back(ordinary);
            all.parts.back().mean = *mean;
        }
        all.parts.insert(all.parts.end(), all.parts.size(), ordinary);
        all.lift = ordinary.lift;
        hard.distributions[tensor.name] = all;
    }
    return hard;
}

/// Few elements of few rows as the cases have them, or, of selections, alike: who looks at others, be it in all rows, does not see them.
/// Where there is little work several such contents, the first of one piece.
std::vector<workload::Case> fewHard(const workload::Workload &workload, std::uint64_t seed)
{
    const std::optional<workload::Case> all = allCases(workload, seed);
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
    const bool modest = isModestWork(workload);
    const auto cases = static_cast<int>(hardCases(workload).size());
    for (const int pieces : little   ? std::vector{1, 1, cases, 2 * cases, 2 * cases, 4 * cases}
                            : modest ? std::vector{1, 4 * cases}
                                     : std::vector{1})
        add(pieces, false, "in ");
    const int ofCopies = little ? 2 : modest ? 1 : 0;
    for (int i = 0; i < ofCopies && contains(workload::selections, workload.oracle); ++i)
        add(manyCopies, true, "copies in ");
    return contents;
}

/// Cases as they are declared, at the timed shape: of operators of which no more is known, whose limits the file has set for these. Offsets are
/// as they are timed. None of much work, whose oracle takes its time, and whose sums may be too long for such limits.
std::vector<workload::Case> asDeclared(const workload::Workload &workload, CipherRandom &random)
{
    std::vector<const workload::Case *> cases = hardCases(workload);
    const std::size_t most = isLittleWork(workload) ? 2 : isModestWork(workload) ? 1 : 0;
    std::vector<workload::Case> contents;
    for (std::uint64_t drawn = 20; !cases.empty() && contents.size() < most; ++drawn) {
        const auto chosen = cases.begin() + static_cast<std::ptrdiff_t>(random.bits(drawn) % cases.size());
        nameAfter(contents.emplace_back(atTimedShape(workload, **chosen)), {*chosen});
        cases.erase(chosen);
    }
    return contents;
}

/// All rows at some distance from zero, which operators take off: what rounding leaves of squares that are taken about zero is many times what is
/// allowed. The limits are those of ordinary rows.
std::optional<workload::Case> rowsApart(const workload::Workload &workload, double least, double most,
                                        double drawn)
{
    if (!contains(centring, workload.oracle))
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution d = workload.distributionOf(tensor, hard);
        if (tensor.role != workload::Role::Input || tensor.shape.size() < 2)
            continue;
        if (d.kind != DistributionKind::Normal || !holdsManyScales(tensor.dtype))
            return std::nullopt;
        d.mean = d.stddev * least * std::pow(most / least, drawn);
        hard.distributions[tensor.name] = d;
    }
    hard.name += " (rows apart)";
    return hard;
}

/// Doubles of a selection that single precision does not tell from each other.
std::optional<workload::Case> alikeInSingle(const workload::Workload &workload)
{
    workload::Case hard = workload.cases.front();
    hard.name += " (alike in single precision)";
    for (const workload::Tensor &tensor : workload.tensors) {
        if (tensor.role != workload::Role::Input)
            continue;
        if (tensor.dtype != DType::F64 || !contains(workload::selections, workload.oracle))
            return std::nullopt;
        Distribution &d = hard.distributions[tensor.name];
        d = {};
        d.mean = 1;
        d.stddev = 0;
        d.allBits = true;
    }
    return hard;
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

/// Keys and values that are small, all of them, and scores as usual: steps of a fixed size lose them.
std::optional<workload::Case> smallKeysAndValues(const workload::Workload &workload)
{
    constexpr int octavesOfKeys = 5; // scores are as usual: queries are as much larger
    constexpr int octavesOfValues = 6;
    workload::Case hard = workload.cases.front();
    for (const auto &[role, octaves] :
         {std::pair{"q", octavesOfKeys}, {"k", -octavesOfKeys}, {"v", -octavesOfValues}}) {
        const workload::Tensor *tensor = tensorOf(workload, role);
        if (!tensor)
            return std::nullopt;
        Distribution d = workload.distributionOf(*tensor, hard);
        if (d.kind != DistributionKind::Normal || kernel::sizeOf(tensor->dtype) < 2)
            return std::nullopt;
        d.factor = std::ldexp(1.0, octaves);
        hard.distributions[tensor->name] = d;
    }
    hard.name += " (small keys and values)";
    return hard;
}

/// One key in eight, or one in 256, as the queries of such content are, queries as usual: who looks at queries, or at the first keys, does not
/// see it.
std::optional<workload::Case> largeKeys(const workload::Workload &workload,
                                        std::optional<workload::Case> hard, bool few)
{
    const std::size_t ordinaryShare = few ? 255 : 7;
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

/// Of one query in sixteen two terms of each score are far larger than all others and cancel; all else is as usual, and so are the scores: who
/// guards half precision by what is large in them, or in keys, sees nothing. Of operands of 16 bits.
std::optional<workload::Case> largePairs(const workload::Workload &workload, bool near)
{
    workload::Case hard = workload.cases.front();
    for (const char *role : {"q", "k"}) {
        const workload::Tensor *tensor = tensorOf(workload, role);
        if (!tensor || (tensor->dtype != DType::F16 && tensor->dtype != DType::BF16))
            return std::nullopt;
        Distribution d = workload.distributionOf(*tensor, hard);
        d.pair = largePair;
        d.isNear = near;
        d.isSecond = std::string_view(role) == "k";
        hard.distributions[tensor->name] = d;
    }
    if (const workload::Tensor *values = tensorOf(workload, "v")) { // which are large there too
        Distribution d = workload.distributionOf(*values, hard);
        d.factor *= largeValues;
        hard.distributions[values->name] = d;
    }
    hard.name += near ? " (near large pairs)" : " (large pairs)";
    return hard;
}

/// Queries on one side of zero and keys on the other: all scores of all queries are about so far below it.
std::optional<workload::Case> scoresFarBelow(const workload::Workload &workload, double score)
{
    workload::Case hard = workload.cases.front();
    double sign = 1;
    for (const char *role : {"q", "k"}) {
        const workload::Tensor *tensor = tensorOf(workload, role);
        const auto shape = tensor ? workload.shapeOf(*tensor, hard) : Result<std::vector<std::int64_t>>();
        if (!shape || shape->empty() || shape->back() < 1)
            return std::nullopt;
        Distribution d = workload.distributionOf(*tensor, hard);
        if (d.kind != DistributionKind::Normal)
            return std::nullopt;
        d.mean = sign * std::sqrt(score / std::sqrt(static_cast<double>(shape->back())));
        hard.distributions[tensor->name] = d;
        sign = -1;
    }
    hard.name += " (scores far below)";
    return hard;
}

} // namespace

std::vector<workload::Case> hardContents(const workload::Workload &workload, std::uint64_t seed)
{
    std::vector<workload::Case> contents;
    CipherRandom random(seed, scaleStream);
    const auto add = [&](std::optional<workload::Case> content) {
        if (content)
            contents.push_back(std::move(*content));
    };
    if (isProduct(workload.oracle) || workload.oracle == "conv2d_nhwc") {
        contents = hardProducts(workload, seed);
        for (std::size_t i = 0; i < contents.size();
             ++i) { // groups as long as each other in one of two, nearly
            if ((random.bits(13) >> (i % 64)) % 2 == 0)
                contents[i] = *unevenSequences(workload, std::move(contents[i]));
        }
    } else if (contains(rowOperators, workload.oracle)) {
        add(allCases(workload, seed));
        for (workload::Case &content : fewHard(workload, seed))
            contents.push_back(std::move(content));
        add(alikeInSingle(workload));
        // Three where there is little work, each of another distance.
        constexpr std::array distances{leastOffset, 22.0, 36.0, 60.0};
        for (std::size_t i = 0; i + 1 < distances.size(); ++i) {
            if (isLittleWork(workload) || random.bits(9) % (distances.size() - 1) == i)
                add(rowsApart(workload, distances.at(i), distances.at(i + 1), random.uniform(10 + i)));
        }
    } else if (contains(attentionOperators, workload.oracle)) {
        // Sequences as long as the timed ones in one of two contents, so that their lengths say nothing.
        const bool evenFirst = random.bits(3) % 2 == 0;
        const bool fewFirst = random.bits(4) % 2 == 0;
        const auto lengths = [&](bool even, std::optional<workload::Case> hard) {
            return even ? hard : unevenSequences(workload, std::move(hard));
        };
        const bool pairs = random.bits(5) % 4 == 0; // of much work one of the three
        const bool small = random.bits(5) % 4 == 1;
        const bool little = isLittleWork(workload) || isModestWork(workload);
        add(lengths(evenFirst, allCases(workload, seed)));
        if (little || small)
            add(smallKeysAndValues(workload));
        if (little || (!pairs && !small))
            add(largeKeys(workload, lengths(!evenFirst, allCases(workload, seed)), fewFirst));
        if (little)
            add(largeKeys(workload, lengths(evenFirst, allCases(workload, seed)), !fewFirst));
        if (little || pairs)
            add(largePairs(workload, !little && random.bits(7) % 2 == 0));
        if (little) {
            add(largePairs(workload, true));
            // Where exponentials of single precision are nearly zero, and those of half precision.
            for (const auto &[least, most] : {std::pair{80.0, 110.0}, {10.0, 25.0}})
                add(scoresFarBelow(workload, least + (most - least) * random.uniform(8)));
        }
    } else if (workload.oracle == "gated_delta_rule") {
        contents = hardRecurrences(workload, seed);
    } else if (workload.oracle == "python") {
        contents = asDeclared(workload, random);
    }
    for (workload::Case &content : contents)
        content.blended = true;
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
    return isWithin(workload, littleFlops, littleBytes);
}

bool isModestWork(const workload::Workload &workload)
{
    return !isLittleWork(workload) && isWithin(workload, modestFlops, modestBytes);
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
    const bool patched = std::any_of(c.distributions.begin(), c.distributions.end(), [](const auto &entry) {
        return !entry.second.parts.empty() && entry.second.headGroups == 0;
    });
    if (patched)
        instance.tolerance.atol *= widerRows;
    const bool swallows = std::any_of(c.distributions.begin(), c.distributions.end(), [&](const auto &entry) {
        const workload::Tensor *tensor = workload.findTensor(entry.first);
        return entry.second.spike != 0 && tensor && kernel::sizeOf(tensor->dtype) == 1;
    });
    if (swallows)
        instance.tolerance.relL2 = std::max(instance.tolerance.relL2, besideALargeTerm);
    const bool isLow = std::any_of(c.distributions.begin(), c.distributions.end(), [&](const auto &entry) {
        const workload::Tensor *tensor = workload.findTensor(entry.first);
        return tensor && tensor->dtype == DType::F32 && entry.second.kind == DistributionKind::Normal
               && std::abs(entry.second.mean)
                      < std::abs(workload.distributionOf(*tensor, workload.cases.front()).mean);
    });
    if (!isLow && !hasKind(workload, c, DistributionKind::Mixed))
        return;
    const auto largest = largestProduct(workload, instance);
    for (const auto &[name, expected] : instance.expected) {
        const double rms = rootMeanSquare(expected);
        if (largest && rms > 0)
            instance.tolerance.atol = std::max(instance.tolerance.atol, normShare * *largest / rms);
    }
}

} // namespace klineage::gate
