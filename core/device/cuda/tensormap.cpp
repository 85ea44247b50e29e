// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/tensormap.h"

#include <optional>

namespace klineage::gate::cuda {

namespace {

using kernel::DType;

std::optional<CUtensorMapDataType> dataType(DType dtype)
{
    switch (dtype) {
    case DType::F64:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::F32:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::TF32:
        return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    case DType::F16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::BF16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::F8E4M3:
    case DType::F8E5M2:
    case DType::U8:
    case DType::I8:
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case DType::I16:
        return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case DType::I32:
        return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::U32:
        return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case DType::I64:
        return CU_TENSOR_MAP_DATA_TYPE_INT64;
    }
    return {};
}

CUtensorMapSwizzle swizzle(kernel::Swizzle value)
{
    switch (value) {
    case kernel::Swizzle::None:
        return CU_TENSOR_MAP_SWIZZLE_NONE;
    case kernel::Swizzle::B32:
        return CU_TENSOR_MAP_SWIZZLE_32B;
    case kernel::Swizzle::B64:
        return CU_TENSOR_MAP_SWIZZLE_64B;
    case kernel::Swizzle::B128:
        return CU_TENSOR_MAP_SWIZZLE_128B;
    }
    return CU_TENSOR_MAP_SWIZZLE_NONE;
}

CUtensorMapL2promotion promotion(kernel::L2Promotion value)
{
    switch (value) {
    case kernel::L2Promotion::None:
        return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    case kernel::L2Promotion::B64:
        return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case kernel::L2Promotion::B128:
        return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case kernel::L2Promotion::B256:
        return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    }
    return CU_TENSOR_MAP_L2_PROMOTION_NONE;
}

} // namespace

Result<CUtensorMap> encodeTensorMap(const Driver &driver, const kernel::ResolvedTensorMap &map,
                                    CUdeviceptr address)
{
    const auto type = dataType(map.dtype);
    const std::size_t rank = map.dims.size();
    if (!type || rank < 1 || rank > 5 || map.box.size() != rank || map.strideBytes.size() + 1 != rank)
        return fail(ErrorCode::InvalidInput,
                    "Cannot encode tensor map " + map.name
                        + ": it needs 1 to 5 dims, a box of the same rank and one stride less.");
    // The driver counts dimensions from the innermost; the plan is written outermost first.
    cuuint64_t dims[5] = {};
    cuuint64_t strides[5] = {};
    cuuint32_t box[5] = {};
    cuuint32_t elementStrides[5] = {1, 1, 1, 1, 1};
    for (std::size_t i = 0; i < rank; ++i) {
        dims[i] = static_cast<cuuint64_t>(map.dims[rank - 1 - i]);
        box[i] = static_cast<cuuint32_t>(map.box[rank - 1 - i]);
        if (i + 1 < rank)
            strides[i] = static_cast<cuuint64_t>(map.strideBytes[rank - 2 - i]);
    }
    CUtensorMap encoded{};
    const CUresult result = driver.tensorMapEncodeTiled(
        &encoded, *type, static_cast<cuuint32_t>(rank), reinterpret_cast<void *>(address), dims, strides, box,
        elementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle(map.swizzle), promotion(map.l2Promotion),
        map.fill == kernel::TensorMapFill::Nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                               : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return tl::unexpected(driver.error(result, "encode tensor map " + map.name));
    return encoded;
}

} // namespace klineage::gate::cuda
