// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/findingshtml.h"

#include "ui/profile/richtext.h"

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

QString findingsHtml(const gate::Analysis &analysis)
{
    QString html = QStringLiteral("<p>%1</p>").arg(escaped(analysis.classification.reason));
    for (const gate::ToolFinding &finding : analysis.findings) {
        const QString of = finding.kernel.empty()
                               ? QString()
                               : QLatin1Char(' ') + dimmed(translated("of %1").arg(escaped(finding.kernel)));
        html += QStringLiteral("<p><b>%1</b>%2<br/>%3</p>")
                    .arg(toolTitle(finding.tool), of, escaped(finding.text));
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
