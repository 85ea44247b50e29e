// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/findingshtml.h"

#include "ui/profile/richtext.h"
#include "ui/profile/why/explainhtml.h"
#include "ui/style/format.h"

#include <QCoreApplication>

#include <map>

namespace klineage::ui {

namespace {

QString translated(const char *text)
{
    return QCoreApplication::translate("Findings", text);
}

QString toolTitle(const std::string &tool)
{
    QString text = escaped(tool).replace(QLatin1Char('-'), QLatin1Char(' '));
    if (!text.isEmpty())
        text[0] = text[0].toUpper();
    return text;
}

/// "Where samples show it: line 88 (26.5 % of all), line 90 (3.1 %)"; empty when none do.
QString linesHtml(const gate::ToolFinding &finding)
{
    QStringList lines;
    for (const gate::FindingLine &line : finding.lines)
        lines << sourceLineLink(1, line.line, translated("line %1").arg(line.line))
                     + dimmed(
                         QStringLiteral(" (%1)").arg(formatQuantity(100 * line.share, QStringLiteral("%"))));
    return lines.isEmpty() ? QString()
                           : QStringLiteral("<br/>")
                                 + dimmed(translated("Where the samples show it, with their share of all: "))
                                 + lines.join(QStringLiteral(" · "));
}

} // namespace

Chip chipOf(gate::BoundBy bound)
{
    switch (bound) {
    case gate::BoundBy::Unknown:
        return {};
    case gate::BoundBy::Compute:
        return {translated("compute-bound"), QStringLiteral("∑"), Tone::Accent};
    case gate::BoundBy::Memory:
        return {translated("memory-bound"), QStringLiteral("≡"), Tone::Accent};
    case gate::BoundBy::Latency:
        return {translated("latency-bound"), QStringLiteral("◷"), Tone::Warn};
    case gate::BoundBy::Mixed:
        return {translated("compute and memory"), QStringLiteral("⋈"), Tone::Accent};
    }
    return {};
}

QString findingsHtml(const gate::Analysis &analysis, const std::string &intensities)
{
    QString html = QStringLiteral("<p>%1</p>").arg(escaped(analysis.classification.reason));
    if (!intensities.empty())
        html += QStringLiteral("<p>%1</p>").arg(dimmed(escaped(intensities)));
    for (const gate::ToolFinding &finding : analysis.findings) {
        const QString of = finding.kernel.empty()
                               ? QString()
                               : QLatin1Char(' ') + dimmed(translated("of %1").arg(escaped(finding.kernel)));
        const QString title = toolTitle(finding.tool);
        html += QStringLiteral("<p><b>%1</b>%2<br/>%3%4</p>")
                    .arg(finding.metric.empty() ? title : metricLink(finding.metric, title), of,
                         escaped(finding.text), linesHtml(finding));
    }
    if (analysis.findings.empty())
        html += QStringLiteral("<p>%1</p>")
                    .arg(dimmed(translated("No tool that could look found anything to say.")));
    std::map<std::string, QStringList> missing;
    for (const gate::ToolSilence &silence : analysis.notMeasured)
        missing[silence.why].append(toolTitle(silence.tool).toLower());
    for (const auto &[why, tools] : missing)
        html += QStringLiteral("<p>%1</p>")
                    .arg(dimmed(translated("Not measured (%1): %2.")
                                    .arg(escaped(why), tools.join(QStringLiteral(", ")))));
    return html;
}

} // namespace klineage::ui
