// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/report/report.h"

#include <QByteArray>

#include <map>
#include <string>

namespace klineage::ui {

/// Figures of a report by name, each an SVG element without a prolog.
using ReportFigures = std::map<std::string, QByteArray>;

/// Draws the figures that the document names, with the plots of the window and in the theme that is applied. GUI thread; events are
/// processed meanwhile. A figure that could not be drawn is not there.
[[nodiscard]] ReportFigures drawFigures(const Workspace &workspace, const report::Subject &subject,
                                        const report::Document &document);

} // namespace klineage::ui
