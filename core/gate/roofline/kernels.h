// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage::gate::roofline {

/// The candidate files of kernels/, as they lie there. They are trusted, and measured like any candidate.
extern const char *const bandwidthCl;
extern const char *const fmaCl;
extern const char *const bandwidthCu;
extern const char *const fmaCu;
extern const char *const mmaCu;
extern const char *const wgmmaCu;

} // namespace klineage::gate::roofline
