// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidatewords.h"
#include "core/workload/workload.h"

namespace klineage::workload {

/// Words of workload.toml; the reader and the writer share them.
inline const kernel::Words<Role> roleWords = {{"input", Role::Input}, {"output", Role::Output}};
inline const kernel::Words<DistributionKind> distributionWords = {
    {"normal", DistributionKind::Normal},
    {"uniform", DistributionKind::Uniform},
    {"bits", DistributionKind::Bits},
    {"large", DistributionKind::Large},
    {"neg_infinity", DistributionKind::NegInfinity},
    {"integers", DistributionKind::Integers},
    {"offsets", DistributionKind::Offsets},
    {"unit_rows", DistributionKind::UnitRows},
    {"sigmoid", DistributionKind::Sigmoid},
    {"mixed", DistributionKind::Mixed},
    {"log_gates", DistributionKind::LogGates},
};

enum class OracleProvider { Builtin, Python };
inline const kernel::Words<OracleProvider> oracleProviderWords = {{"builtin", OracleProvider::Builtin},
                                                                  {"python", OracleProvider::Python}};
inline const kernel::Words<PythonArrays> arraysWords = {
    {"numpy", PythonArrays::Numpy}, {"torch", PythonArrays::Torch}, {"lists", PythonArrays::Lists}};
/// Whether inputs come in their tensor's type.
inline const kernel::Words<bool> precisionWords = {{"double", false}, {"declared", true}};

/// Vendor libraries that references can name, and the device each belongs to.
inline const kernel::Words<kernel::DeviceKind> providerWords = {
    {"openblas", kernel::DeviceKind::OpenCl}, {"onednn", kernel::DeviceKind::OpenCl},
    {"cublas", kernel::DeviceKind::Cuda},     {"cublaslt", kernel::DeviceKind::Cuda},
    {"cudnn", kernel::DeviceKind::Cuda},      {"cub", kernel::DeviceKind::Cuda},
    {"torch", kernel::DeviceKind::Cuda},      {"flashinfer", kernel::DeviceKind::Cuda},
    {"fla", kernel::DeviceKind::Cuda},        {"flash_qla", kernel::DeviceKind::Cuda},
    {"fa3", kernel::DeviceKind::Cuda},
};

} // namespace klineage::workload
