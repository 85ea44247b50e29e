// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage {

/// "0.1.0 (237d369a1b2c)": the version, and the commit that the program was built from when that was known ("…, changed" when its
/// files were not those of the commit); else the version alone.
[[nodiscard]] const char *versionText();

} // namespace klineage
