// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The headers that nvcc finds beside its host compiler and NVRTC lacks, as far as device code uses them. They are texts of this program that NVRTC
/// is handed by name: no file is opened for them, and no other one becomes readable.
namespace klineage::gate::cuda {

struct StandardHeader {
    const char *name; ///< as in #include <name>
    const char *text;
    /// What nvcc's users have without including it, because nvcc includes cuda_runtime.h: "INFINITY std::max …", words between blanks.
    const char *offers;
    bool isOfToolkit; ///< the toolkit has one that NVRTC can read: this one is for where it is missing
};

[[nodiscard]] std::span<const StandardHeader> standardHeaders();

/// What a failed compilation asks for, if anything: it is compiled once more with that.
struct MissingNames {
    std::set<std::string> names;      ///< "INFINITY", "std::max": those that a header offers
    std::vector<std::string> headers; ///< that have them, each once, in the order of the table
    bool wantsDeviceDefault = false;  ///< a function without __device__ was taken for host code
    [[nodiscard]] bool isEmpty() const { return headers.empty() && !wantsDeviceDefault; }
};

/// log: NVRTC's. At most 64 KiB of it are read.
[[nodiscard]] MissingNames missingNames(std::string_view log);

} // namespace klineage::gate::cuda
