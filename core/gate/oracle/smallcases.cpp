// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/smallcases.h"

#include "core/base/random.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace klineage::gate {

namespace {

using Extents = std::vector<std::int64_t>;

constexpr double wideLimit = 1e-11;
constexpr double narrowLimit = 0x1p-24 + wideLimit;

/// The tensors of a small problem, made from those of the large one.
class SmallCase
{
public:
    SmallCase(const workload::Workload &workload, const std::vector<HostTensor> &tensors)
        : m_workload(workload)
        , m_tensors(tensors)
        , m_seed(entropy())
    {}

    [[nodiscard]] HostTensor *tensor(const char *role)
    {
        const auto named = m_workload.oracleArgs.find(role);
        const auto found = std::find_if(m_tensors.begin(), m_tensors.end(), [&](const HostTensor &tensor) {
            return named != m_workload.oracleArgs.end() && tensor.name == named->second;
        });
        return found == m_tensors.end() ? nullptr : &*found;
    }
    void shape(const char *role, Extents shape)
    {
        HostTensor *const changed = tensor(role);
        if (!changed)
            return;
        changed->shape = std::move(shape);
        if (changed->role == workload::Role::Input)
            generate(*changed, {}, m_seed, m_stream++);
    }
    void offsets(const char *role, const std::vector<int> &values)
    {
        HostTensor *const changed = tensor(role);
        if (!changed)
            return;
        changed->shape = {static_cast<std::int64_t>(values.size())};
        changed->bytes.resize(values.size() * kernel::sizeOf(changed->dtype));
        for (std::size_t i = 0; i < values.size(); ++i)
            kernel::storeElement(changed->bytes.data(), changed->dtype, i, values[i]);
    }
    [[nodiscard]] std::vector<HostTensor> take() { return std::move(m_tensors); }

private:
    const workload::Workload &m_workload;
    std::vector<HostTensor> m_tensors;
    std::uint64_t m_seed;
    std::uint64_t m_stream = 0;
};

/// The same without the bytes, which are large.
std::vector<HostTensor> withoutBytes(const std::vector<HostTensor> &tensors)
{
    std::vector<HostTensor> result;
    for (const HostTensor &tensor : tensors)
        result.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, {}});
    return result;
}

} // namespace

std::vector<std::vector<HostTensor>> smallCasesOf(const workload::Workload &workload,
                                                  const std::vector<HostTensor> &tensors)
{
    const auto outlined = withoutBytes(tensors);
    std::vector<std::vector<HostTensor>> cases;
    const auto add = [&](const auto &shaped) {
        SmallCase small(workload, outlined);
        shaped(small);
        cases.push_back(small.take());
    };
    SmallCase given(workload, outlined);
    const bool transposed = workload.oracle == "matmul_nt";
    const bool grouped = workload.oracle == "matmul_grouped_nn";
    if ((transposed || grouped || workload.oracle == "matmul_nn") && given.tensor("a")) {
        const std::size_t dimensions = given.tensor("a")->shape.size();
        const Extents batch(dimensions - std::min<std::size_t>(dimensions, 2),
                            2); // as many dimensions as there
        const auto after = [](Extents shape, std::initializer_list<std::int64_t> more) {
            shape.insert(shape.end(), more);
            return shape;
        };
        for (const auto &[m, n, k] : {std::tuple{1, 1, 1}, std::tuple{70, 67, 35}, std::tuple{65, 130, 17}})
            add([&, m = m, n = n, k = k](SmallCase &small) {
                small.shape("a", after(batch, {m, k}));
                small.shape("b",
                            transposed ? after(batch, {n, k}) : after(grouped ? Extents{3} : batch, {k, n}));
                small.shape("bias", {n});
                small.offsets("offsets", {0, m / 35, m / 35, m});
                small.shape("out", after(batch, {m, n}));
            });
    }
    if (workload.oracle == "conv2d_nhwc" && given.tensor("data") && given.tensor("weight")) {
        const HostTensor *data = given.tensor("data");
        const std::int64_t places =
            given.tensor("weight")->shape.front() / std::max<std::int64_t>(data->shape.back(), 1);
        for (const auto &[h, w, c, f] : {std::tuple{5, 7, 3, 5}, std::tuple{9, 8, 20, 66}})
            add([&, h = h, w = w, c = c, f = f](SmallCase &small) {
                small.shape("data", {2, h, w, c});
                small.shape("weight", {places * c, f});
                small.shape("out", {2, h, w, f});
            });
    }
    const bool causal = workload.oracle == "attention_varlen_causal";
    if ((causal || workload.oracle == "attention_varlen") && given.tensor("q") && given.tensor("k")) {
        const std::int64_t dim = given.tensor("q")->shape.back();
        // As many heads of q to one of k and v as there.
        const std::int64_t shared =
            given.tensor("q")->shape[1] / std::max<std::int64_t>(given.tensor("k")->shape[1], 1);
        const std::int64_t heads = shared > 1 ? 2 : 3;
        const std::int64_t least = dim > 128 ? 129 : dim > 64 ? 65 : 1; // so that the same kernel does it
        for (const std::int64_t width : {dim, std::max(least, dim - 3)})
            add([&, width](SmallCase &small) {
                small.shape("q", {137, heads * shared, width});
                small.shape("k", {101, heads, width});
                small.shape("v", {101, heads, width});
                small.offsets("cu_q", {0, 1, 71, 71, 137});
                small.offsets("cu_k", {0, 33, 34, 34, 101});
                small.shape("out", {137, heads * shared, width});
            });
    }
    return cases;
}

std::optional<std::string> disagreement(const ExpectedView &device, const std::vector<double> &cpu, bool wide)
{
    if (device.size() != cpu.size())
        return "it gave " + std::to_string(device.size()) + " values, not " + std::to_string(cpu.size());
    double squares = 0;
    for (const double value : cpu)
        squares += value * value;
    const double rms = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(cpu.size(), 1)));
    for (std::size_t i = 0; i < cpu.size(); ++i) {
        const double limit = wideLimit * rms + (wide ? wideLimit : narrowLimit) * std::abs(cpu[i]);
        if (std::abs(device[i] - cpu[i]) <= limit)
            continue;
        char text[120];
        std::snprintf(text, sizeof text, "element %zu is %.17g, not %.17g", i, device[i], cpu[i]);
        return std::string(text);
    }
    return std::nullopt;
}

} // namespace klineage::gate
