// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/oraclejob.h"

#include "core/gate/check/product.h"
#include "core/gate/check/roles.h"
#include "core/gate/oracle/kernels.h"

#include <algorithm>
#include <cstring>

namespace klineage::gate {

namespace {

constexpr std::int64_t mostColumns = 256;
constexpr std::int64_t mostBlocksAcross = 65535; // of a grid's second or third dimension
constexpr std::int64_t noBias = 5;               // in place of its type

tl::unexpected<Error> notOnDevice(const std::string &why)
{
    return fail(ErrorCode::Unavailable, why);
}

/// The tensors of the roles, in order; empty when one is missing.
std::vector<const HostTensor *> roleTensorsOf(OracleRoles &roles, std::initializer_list<const char *> names)
{
    std::vector<const HostTensor *> found;
    for (const char *name : names) {
        found.push_back(roles[name]);
        if (!found.back())
            return {};
    }
    return found;
}

bool typesAreKnown(std::initializer_list<const HostTensor *> inputs)
{
    return std::all_of(inputs.begin(), inputs.end(),
                       [](const auto *tensor) { return oracle::elementType(tensor->dtype) >= 0; });
}

const char *const unfit = "the tensors are not such as it takes";
const char *const unknownType = "a type of its inputs is not known there";

OracleJob jobOf(const HostTensor &out, bool wide)
{
    OracleJob job;
    job.output = out.name;
    job.elements = out.elements();
    job.wide = wide;
    job.tunables["WIDE"] = wide ? 1 : 0;
    return job;
}

std::vector<std::byte> offsetBytesOf(const std::vector<std::int64_t> &values)
{
    std::vector<std::byte> bytes(values.size() * sizeof(std::int64_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

/// What products of matrices and a convolution, which is one with gathered rows, have in common.
OracleJob productJob(const GroupedProduct &product, bool wide, std::map<std::string, std::int64_t> images)
{
    OracleJob job = jobOf(*product.out, wide);
    job.text = oracle::matmulCu;
    job.name = "matmul.cu";
    job.tunables.insert({{"TYPE_A", oracle::elementType(product.a->dtype)},
                         {"TYPE_B", oracle::elementType(product.b->dtype)},
                         {"TYPE_BIAS", product.bias ? oracle::elementType(product.bias->dtype) : noBias},
                         {"TRANSPOSE_B", product.transposeB ? 1 : 0},
                         {"GATHER", images.empty() ? 0 : 1}});
    if (images.empty())
        images = {{"HEIGHT", 1}, {"WIDTH", 1}, {"CHANNELS", 1}, {"WINDOW", 1}};
    for (const auto &[name, size] : images)
        job.sizes[name] = size;
    std::int64_t most = 1;
    for (std::size_t i = 0; i + 1 < product.offsets.size(); ++i)
        most = std::max(most, product.offsets[i + 1] - product.offsets[i]);
    job.sizes["M"] = most;
    job.sizes["N"] = product.n;
    job.sizes["K"] = product.k;
    job.sizes["GROUPS"] = static_cast<std::int64_t>(product.offsets.size() - 1);
    job.made = {offsetBytesOf(product.offsets)};
    job.inputs = {{"a", product.a->bytes},
                  {"b", product.b->bytes},
                  {"bias", product.bias ? std::span<const std::byte>(product.bias->bytes) : job.made[0]},
                  {"offsets", job.made[0]}};
    return job;
}

Result<OracleJob> matmulJob(OracleRoles &roles, Product which, bool wide)
{
    const auto product = groupedProductOf(roles, which);
    if (!product)
        return notOnDevice(unfit);
    if (!typesAreKnown({product->a, product->b}) || (product->bias && !typesAreKnown({product->bias})))
        return notOnDevice(unknownType);
    if (product->n / 64 >= mostBlocksAcross
        || static_cast<std::int64_t>(product->offsets.size()) > mostBlocksAcross)
        return notOnDevice("it is too wide, or has too many groups");
    return productJob(*product, wide, {});
}

Result<OracleJob> convolutionJob(OracleRoles &roles, bool wide)
{
    const auto tensors = roleTensorsOf(roles, {"data", "weight", "out"});
    if (tensors.empty())
        return notOnDevice(unfit);
    const HostTensor &data = *tensors[0], &weight = *tensors[1], &out = *tensors[2];
    if (data.shape.size() != 4 || weight.shape.size() != 2 || out.shape.size() != 4)
        return notOnDevice(unfit);
    const std::int64_t channels = data.shape[3];
    const std::int64_t filters = weight.shape[1];
    std::int64_t window = 1;
    while (window * window * channels < weight.shape[0])
        window += 2;
    if (window * window * channels != weight.shape[0]
        || out.shape != std::vector{data.shape[0], data.shape[1], data.shape[2], filters})
        return notOnDevice(unfit);
    if (!typesAreKnown({&data, &weight}))
        return notOnDevice(unknownType);
    if (filters / 64 >= mostBlocksAcross)
        return notOnDevice("it has too many filters");
    GroupedProduct product;
    product.a = &data;
    product.b = &weight;
    product.out = &out;
    product.n = filters;
    product.k = weight.shape[0];
    product.offsets = {0, data.shape[0] * data.shape[1] * data.shape[2]};
    return productJob(
        product, wide,
        {{"HEIGHT", data.shape[1]}, {"WIDTH", data.shape[2]}, {"CHANNELS", channels}, {"WINDOW", window}});
}

Result<OracleJob> attentionJob(OracleRoles &roles, bool causal, bool wide)
{
    const auto tensors = roleTensorsOf(roles, {"q", "k", "v", "cu_q", "cu_k", "out"});
    if (tensors.empty())
        return notOnDevice(unfit);
    const HostTensor &q = *tensors[0], &k = *tensors[1], &v = *tensors[2], &out = *tensors[5];
    if (q.shape.size() != 3 || k.shape.size() != 3 || k.shape != v.shape || out.shape != q.shape
        || k.shape[1] < 1 || q.shape[1] % k.shape[1] != 0 || q.shape[2] != k.shape[2]
        || tensors[3]->shape.size() != 1 || tensors[3]->shape != tensors[4]->shape)
        return notOnDevice(unfit);
    const auto queries = ascendingOffsets(*tensors[3], q.shape[0]);
    const auto keys = ascendingOffsets(*tensors[4], k.shape[0]);
    if (queries.size() < 2 || keys.size() < 2)
        return notOnDevice(unfit);
    for (std::size_t i = 0; i + 1 < queries.size(); ++i) {
        if (queries[i] < queries[i + 1] && keys[i] == keys[i + 1])
            return notOnDevice(unfit);
    }
    if (!typesAreKnown({&q, &k, &v}))
        return notOnDevice(unknownType);
    const std::int64_t dim = q.shape[2];
    if (dim > mostColumns || q.shape[1] > mostBlocksAcross)
        return notOnDevice("its heads are too many or too wide");
    OracleJob job = jobOf(out, wide);
    job.text = oracle::attentionCu;
    job.name = "attention.cu";
    job.tunables.insert({{"TYPE_Q", oracle::elementType(q.dtype)},
                         {"TYPE_K", oracle::elementType(k.dtype)},
                         {"TYPE_V", oracle::elementType(v.dtype)},
                         {"CAUSAL", causal ? 1 : 0},
                         {"COLUMNS", dim <= 64    ? 4
                                     : dim <= 128 ? 8
                                                  : 16}});
    job.sizes = {{"QUERIES", q.shape[0]},
                 {"SEQUENCES", static_cast<std::int64_t>(queries.size() - 1)},
                 {"HEADS", q.shape[1]},
                 {"KV_HEADS", k.shape[1]},
                 {"DIM", dim}};
    job.made = {offsetBytesOf(queries), offsetBytesOf(keys)};
    job.inputs = {{"q", q.bytes},
                  {"k", k.bytes},
                  {"v", v.bytes},
                  {"query_offsets", job.made[0]},
                  {"key_offsets", job.made[1]}};
    return job;
}

} // namespace

Result<OracleJob> oracleJobOf(const workload::Workload &workload, const std::vector<HostTensor> &tensors,
                              bool wide)
{
    OracleRoles roles(workload, tensors);
    if (workload.oracle == "matmul_nn")
        return matmulJob(roles, Product::Nn, wide);
    if (workload.oracle == "matmul_nt")
        return matmulJob(roles, Product::Nt, wide);
    if (workload.oracle == "matmul_grouped_nn")
        return matmulJob(roles, Product::GroupedNn, wide);
    if (workload.oracle == "conv2d_nhwc")
        return convolutionJob(roles, wide);
    if (workload.oracle == "attention_varlen" || workload.oracle == "attention_varlen_causal")
        return attentionJob(roles, workload.oracle == "attention_varlen_causal", wide);
    return notOnDevice("there is no kernel for " + workload.oracle);
}

bool narrowIsEnough(const std::vector<HostTensor> &tensors, const workload::Tolerance &tolerance)
{
    return !tolerance.exact && std::all_of(tensors.begin(), tensors.end(), [](const HostTensor &tensor) {
        return tensor.role == workload::Role::Input
               || (kernel::isFloat(tensor.dtype) && kernel::sizeOf(tensor.dtype) <= 2);
    });
}

} // namespace klineage::gate
