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

/// Vendor libraries that references can name, and the surface each belongs to.
inline const kernel::Words<kernel::Surface> providerWords = {
    {"openblas", kernel::Surface::OpenCl}, {"onednn", kernel::Surface::OpenCl},
    {"cublas", kernel::Surface::Cuda},     {"cublaslt", kernel::Surface::Cuda},
    {"cudnn", kernel::Surface::Cuda},      {"cub", kernel::Surface::Cuda},
    {"torch", kernel::Surface::Cuda},      {"flashinfer", kernel::Surface::Cuda},
    {"fla", kernel::Surface::Cuda},        {"flash_qla", kernel::Surface::Cuda},
    {"fa3", kernel::Surface::Cuda},
};

} // namespace klineage::workload
