// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runprogress.h"

#include "ui/style/format.h"

#include <QCoreApplication>
#include <QStringList>

namespace klineage::ui {

namespace {

QString progressText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::RunProgress", text);
}

} // namespace

QString spendingText(const RunProgress &progress)
{
    QString money = formatDollars(progress.spentDollars);
    if (progress.reservedDollars > 0)
        money += progressText(" + %1 reserved").arg(formatDollars(progress.reservedDollars));
    money += progressText(" of $%1").arg(progress.capDollars, 0, 'g', 6);
    const qint64 input = progress.usage.input + progress.usage.cacheRead + progress.usage.cacheWrite;
    if (input + progress.usage.output > 0)
        money += progressText(" · %1 tokens in, %2 out")
                     .arg(formatCount(input), formatCount(progress.usage.output));
    return money;
}

QString progressLine(const RunProgress &progress)
{
    QStringList parts{progress.id};
    if (progress.stopping)
        parts << progressText("stopping…");
    else if (progress.pausing)
        parts << progressText("pauses after this step");
    parts << progress.busy << spendingText(progress);
    return parts.join(QStringLiteral(" · "));
}

QString endingLine(const RunEntry &run)
{
    const StatusStyle style = runStateStyle(run);
    if (run.isRunning())
        return progressText("%1 is being run by another program.").arg(run.id());
    if (const std::string &reason = run.record.ending.reason; !reason.empty())
        return QStringLiteral("%1 %2 · %3").arg(style.glyph, style.word, QString::fromStdString(reason));
    return run.isFinished() ? QStringLiteral("%1 %2").arg(style.glyph, style.word)
                            : progressText("‖ stopped · Resume goes on where the record ends.");
}

} // namespace klineage::ui
