// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/runglyph.h"

#include "ui/style/theme.h"

#include <qcustomplot.h>

namespace klineage::ui {

QCPScatterStyle runGlyph(RunTracePoint::Kind kind, const QColor &series)
{
    const Theme &theme = Theme::current();
    switch (kind) {
    case RunTracePoint::Kind::Valid:
        return {QCPScatterStyle::ssDisc, QPen(series, 0), QBrush(series), 6};
    case RunTracePoint::Kind::Audited:
        return {QCPScatterStyle::ssDiamond, QPen(series, 1.6), Qt::NoBrush, 11};
    case RunTracePoint::Kind::Wrapper:
        return {QCPScatterStyle::ssCross, QPen(theme.warn, 1.6), Qt::NoBrush, 7};
    case RunTracePoint::Kind::Failed:
        return {QCPScatterStyle::ssTriangle, QPen(theme.bad, 1.2), Qt::NoBrush, 8};
    case RunTracePoint::Kind::Other:
        break;
    }
    return {QCPScatterStyle::ssCircle, QPen(theme.dim, 0), Qt::NoBrush, 4};
}

} // namespace klineage::ui
