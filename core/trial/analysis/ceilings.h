// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a device can do at most, as it was measured on the device itself. Pure data: who measures is measure.h, who keeps is store.h.
#pragma once

#include "core/base/result.h"
#include "core/trial/trial.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// Bandwidths over one footprint, in bytes per second; each the best of several runs. A copy's bytes count once read, once written.
struct BandwidthCeiling {
    double footprintBytes = 0; ///< all memory that is touched again and again
    double copy = 0;
    double read = 0;
    double write = 0;
    double spread = 0; ///< of the copies: (best − median) / best

    [[nodiscard]] double best() const;
};

/// How fast one kind of arithmetic goes, in floating-point operations per second (a multiply-add is two).
struct RateCeiling {
    std::string name;     ///< "fp64", "fp32", "tf32", "bf16" (f16 too), "fp8"
    std::string method;   ///< "fma", "mma.sync", "wgmma": the instruction that gave the most
    double perSecond = 0; ///< best run on operands that look like data
    /// Best run on any operands: with zeros the clock stays higher, because less power is drawn. What nothing on the device can exceed.
    double limit = 0;
    double spread = 0;   ///< (best − median) / best of the runs behind perSecond
    bool isBound = true; ///< false: the chip has faster instructions for this that were not measured
};

/// What identifies the device that ceilings belong to.
using Fingerprint = std::map<std::string, std::string>;

struct Ceilings {
    Fingerprint fingerprint;
    std::string time;        ///< UTC of the latest measurement
    std::string gateVersion; ///< that made it
    double seconds = 0;      ///< it took
    double launchNs = 0;     ///< device time of a run whose only launch does nothing; 0: not measured
    std::vector<BandwidthCeiling> bandwidths; ///< by footprint, smallest first
    std::vector<RateCeiling> rates;

    [[nodiscard]] const RateCeiling *rate(std::string_view name) const;
    /// What bounds a run that touches this much again and again: the one of the largest measured footprint that is not larger, because
    /// less memory never moves slower. nullptr when all of them are larger.
    [[nodiscard]] const BandwidthCeiling *boundFor(double footprintBytes) const;
    /// The one whose footprint is nearest; nullptr when there are none.
    [[nodiscard]] const BandwidthCeiling *nearest(double footprintBytes) const;
};

/// The facts of an environment that a ceiling depends on: platform, device, driver, compiler (OpenCL), sizes, processor;
/// and the way of measuring.
[[nodiscard]] Fingerprint fingerprintOf(const Environment &environment);

/// A ceiling is a maximum, so of two measurements of one device the larger figures hold. The time is the later one's.
[[nodiscard]] Ceilings mergeCeilings(const Ceilings &earlier, const Ceilings &later);

[[nodiscard]] std::string writeCeilings(const Ceilings &ceilings); ///< JSON, indented, with a final newline
[[nodiscard]] Result<Ceilings> parseCeilings(std::string_view text, const std::string &where);

} // namespace klineage::gate
