// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/traceset/offsetsfile.h"

#include "core/files/jsontext.h"

#include <cmath>

namespace klineage::interop {

namespace {

using kernel::DType;
using workload::Distribution;
using workload::DistributionKind;
using workload::Role;
using workload::Tensor;

constexpr std::size_t mostOffsets = std::size_t{1} << 20;

void appendNumber(std::string &bytes, std::uint64_t value, std::size_t size)
{
    for (std::size_t i = 0; i < size; ++i)
        bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

} // namespace

Result<OffsetTensors> fixedIntegers(const workload::Workload &workload, const workload::Case &c)
{
    OffsetTensors tensors;
    for (const Tensor &tensor : workload.tensors) {
        if (tensor.role != Role::Input || kernel::isFloat(tensor.dtype))
            continue;
        const Distribution &d = workload.distributionOf(tensor, c);
        const auto shape = workload.shapeOf(tensor, c);
        const auto end = c.axes.find(d.end);
        const bool isEven = d.kind == DistributionKind::Offsets && d.even && end != c.axes.end() && shape
                            && shape->size() == 1 && shape->front() >= 2 && shape->front() - 1 <= end->second
                            && static_cast<std::size_t>(shape->front()) <= mostOffsets
                            && (tensor.dtype == DType::I32 || tensor.dtype == DType::I64);
        if (!isEven)
            return fail(ErrorCode::InvalidInput, tensor.name);
        // As the gate fills them: steps of 1, and what is left of the whole spread evenly.
        const std::int64_t steps = shape->front() - 1;
        const auto spare = static_cast<double>(end->second - steps);
        std::vector<std::int64_t> &offsets = tensors[tensor.name];
        for (std::int64_t i = 0; i <= steps; ++i)
            offsets.push_back(i
                              + static_cast<std::int64_t>(
                                  std::floor(spare * (static_cast<double>(i) / static_cast<double>(steps)))));
    }
    return tensors;
}

std::string safetensorsText(const workload::Workload &workload, const OffsetTensors &tensors)
{
    files::OrderedJson header;
    std::string data;
    for (const auto &[name, values] : tensors) {
        const DType dtype = workload.findTensor(name)->dtype;
        const std::size_t begin = data.size();
        for (const std::int64_t value : values)
            appendNumber(data, static_cast<std::uint64_t>(value), kernel::sizeOf(dtype));
        header[name] = {{"dtype", dtype == DType::I64 ? "I64" : "I32"},
                        {"shape", files::OrderedJson::array({values.size()})},
                        {"data_offsets", files::OrderedJson::array({begin, data.size()})}};
    }
    std::string text = header.dump();
    while (text.size() % 8 != 0)
        text += ' ';
    std::string bytes;
    appendNumber(bytes, text.size(), 8);
    return bytes + text + data;
}

} // namespace klineage::interop
