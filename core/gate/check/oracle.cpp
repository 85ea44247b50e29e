// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/oracle.h"

#include "core/gate/check/matmul.h"
#include "core/gate/check/parallel.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace klineage::gate {

namespace {

constexpr std::size_t grain = std::size_t{1} << 16;

std::vector<float> toFloats(const HostTensor &tensor)
{
    std::vector<float> values(tensor.elements());
    parallelRanges(values.size(), grain, [&](std::size_t begin, std::size_t end) {
        if (tensor.dtype == kernel::DType::F32 || tensor.dtype == kernel::DType::TF32) {
            std::memcpy(values.data() + begin, tensor.bytes.data() + begin * sizeof(float),
                        (end - begin) * sizeof(float));
            return;
        }
        for (std::size_t i = begin; i < end; ++i)
            values[i] = static_cast<float>(kernel::loadElement(tensor.bytes.data(), tensor.dtype, i));
    });
    return values;
}

/// The tensors that an oracle's roles name.
class Roles
{
public:
    Roles(const workload::Workload &workload, const std::vector<HostTensor> &tensors)
        : m_workload(workload)
        , m_tensors(tensors)
    {}

    const HostTensor *operator[](const std::string &role)
    {
        const auto named = m_workload.oracleArgs.find(role);
        for (const HostTensor &tensor : m_tensors) {
            if (named != m_workload.oracleArgs.end() && tensor.name == named->second)
                return &tensor;
        }
        m_missing = role;
        return nullptr;
    }
    [[nodiscard]] tl::unexpected<Error> problem(const std::string &what) const
    {
        const std::string reason =
            m_missing.empty() ? what : "the role \"" + m_missing + "\" names no tensor";
        return fail(ErrorCode::InvalidInput, "Cannot compute the oracle " + m_workload.oracle + " of "
                                                 + m_workload.name + ": " + reason + ".");
    }

private:
    const workload::Workload &m_workload;
    const std::vector<HostTensor> &m_tensors;
    std::string m_missing;
};

Result<Expected> matmulOracle(Roles roles, bool transposeB)
{
    const HostTensor *a = roles["a"];
    const HostTensor *b = roles["b"];
    const HostTensor *out = roles["out"];
    if (!a || !b || !out)
        return roles.problem({});
    if (a->shape.size() != 2 || b->shape.size() != 2 || out->shape.size() != 2)
        return roles.problem("its tensors must have two dimensions");
    if (kernel::sizeOf(a->dtype) > 4 || kernel::sizeOf(b->dtype) > 4)
        return roles.problem("it takes inputs of at most 32 bits an element");
    const auto k = a->shape[1];
    const auto n = b->shape[transposeB ? 0 : 1];
    if (b->shape[transposeB ? 1 : 0] != k || out->shape[0] != a->shape[0] || out->shape[1] != n)
        return roles.problem("the shapes of its tensors do not fit together");
    Expected expected;
    expected[out->name] = matmul(toFloats(*a), toFloats(*b), static_cast<std::size_t>(a->shape[0]),
                                 static_cast<std::size_t>(n), static_cast<std::size_t>(k), transposeB);
    return expected;
}

void softmaxRow(const float *in, double *out, std::size_t length)
{
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < length; ++i)
        largest = std::max(largest, in[i]);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
        out[i] = std::exp(static_cast<double>(in[i]) - static_cast<double>(largest));
        sum += out[i];
    }
    for (std::size_t i = 0; i < length; ++i)
        out[i] /= sum;
}

Result<Expected> softmaxOracle(Roles roles)
{
    const HostTensor *in = roles["in"];
    const HostTensor *out = roles["out"];
    if (!in || !out)
        return roles.problem({});
    if (in->shape != out->shape || in->shape.empty())
        return roles.problem("input and output must have the same shape");
    const std::vector<float> values = toFloats(*in);
    const std::size_t length = in->rowLength();
    Expected expected;
    std::vector<double> &result = expected[out->name];
    result.resize(values.size());
    parallelRanges(values.size() / length, std::max<std::size_t>(1, grain / length),
                   [&](std::size_t begin, std::size_t end) {
                       for (std::size_t row = begin; row < end; ++row)
                           softmaxRow(values.data() + row * length, result.data() + row * length, length);
                   });
    return expected;
}

} // namespace

Result<Expected> computeOracle(const workload::Workload &workload, const std::vector<HostTensor> &tensors)
{
    Roles roles(workload, tensors);
    Result<Expected> expected;
    if (workload.oracle == "matmul_nn" || workload.oracle == "matmul_nt")
        expected = matmulOracle(roles, workload.oracle == "matmul_nt");
    else if (workload.oracle == "softmax_rows")
        expected = softmaxOracle(roles);
    else
        return roles.problem("there is no such oracle; expected matmul_nn, matmul_nt or softmax_rows");
    if (!expected)
        return expected;
    for (const HostTensor &tensor : tensors) {
        if (tensor.role == workload::Role::Output && !expected->contains(tensor.name))
            return roles.problem("it says nothing about the output " + tensor.name);
    }
    return expected;
}

} // namespace klineage::gate
