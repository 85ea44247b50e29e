// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/why/explainhtml.h"

#include "core/trial/analysis/explain/explaintext.h"
#include "ui/profile/profiledelta.h"
#include "ui/profile/richtext.h"

#include <QCoreApplication>
#include <QStringList>

namespace klineage::ui {

namespace {

const QString metricScheme = QStringLiteral("metric:");
const QString lineScheme = QStringLiteral("line:");

QString explainText(const char *text)
{
    return QCoreApplication::translate("Explain", text);
}

QString linkTo(const QString &target, const QString &html)
{
    return QStringLiteral("<a href=\"%1\" style=\"color:%2\">%3</a>")
        .arg(target, Theme::current().accent.name(), html);
}

/// A figure that reads the same before and after is left out.
QStringList figuresHtml(const std::vector<gate::FigurePair> &pairs)
{
    QStringList figures;
    for (const gate::FigurePair &pair : pairs) {
        const auto side = [&](const std::optional<double> &value) {
            return value ? profileFigure(*value, QString::fromStdString(pair.unit))
                         : explainText("not recorded");
        };
        if (side(pair.before) != side(pair.after))
            figures << explainText("%1 %2 → %3")
                           .arg(metricLink(pair.metric, metricLabel(pair.metric).toHtmlEscaped()),
                                side(pair.before), side(pair.after));
    }
    return figures;
}

QString lineLink(const gate::MovedLine &line, const gate::Explanation &explanation)
{
    return sourceLineLink(line.side(), line.line(), escaped(gate::lineText(line, explanation)));
}

QString causeHtml(const gate::Cause &cause, const gate::Explanation &explanation, int number)
{
    const QString title = escaped(cause.title);
    QStringList rows{QStringLiteral("<b>%1. %2</b> %3")
                         .arg(number)
                         .arg(cause.metric.empty() ? title : metricLink(cause.metric, title),
                              escaped(gate::causeText(cause)))};
    QStringList figures = figuresHtml(cause.figures);
    if (!cause.kernel.empty())
        figures << explainText("mostly in %1").arg(escaped(cause.kernel));
    if (!figures.isEmpty())
        rows << dimmed(figures.join(QStringLiteral(" · ")));
    QStringList lines;
    for (const gate::MovedLine &line : cause.lines)
        lines << lineLink(line, explanation);
    if (!lines.isEmpty())
        rows << dimmed(lines.join(QStringLiteral(" · ")));
    return QStringLiteral("<p>%1</p>").arg(rows.join(QStringLiteral("<br/>")));
}

QString dimSentences(const std::vector<std::string> &texts)
{
    QString html;
    for (const std::string &text : texts)
        html += QStringLiteral("<p>%1</p>").arg(dimmed(escaped(text)));
    return html;
}

} // namespace

QString metricLink(const std::string &metric, const QString &html)
{
    return linkTo(metricScheme + escaped(metric), html);
}

QString sourceLineLink(int side, int line, const QString &html)
{
    return linkTo(QStringLiteral("%1%2:%3").arg(lineScheme).arg(side).arg(line), html);
}

std::optional<ExplainLink> explainLink(const QString &target)
{
    ExplainLink found;
    if (target.startsWith(metricScheme)) {
        found.metric = target.mid(metricScheme.size());
        return found.metric.isEmpty() ? std::nullopt : std::optional(found);
    }
    const QStringList parts = target.split(QLatin1Char(':'));
    if (!target.startsWith(lineScheme) || parts.size() != 3)
        return {};
    found.side = parts[1].toInt();
    found.line = parts[2].toInt();
    return found.line > 0 ? std::optional(found) : std::nullopt;
}

QString explainHtml(const gate::Explanation &explanation)
{
    if (explanation.beforeName.empty()) // nothing was compared
        return QStringLiteral("<p>%1</p>").arg(escaped(explanation.nothing));
    QString html = QStringLiteral("<p>%1 %2%3</p>")
                       .arg(escaped(gate::stepText(explanation)), escaped(explanation.nothing),
                            escaped(gate::togetherText(explanation)));
    html += dimSentences(explanation.kept);
    int number = 0;
    for (const gate::Cause &cause : explanation.causes)
        html += causeHtml(cause, explanation, ++number);
    const QStringList figures = figuresHtml(explanation.figures);
    if (!figures.isEmpty())
        html += QStringLiteral("<p>%1</p>")
                    .arg(dimmed(
                        explainText("Figures that changed: %1").arg(figures.join(QStringLiteral(" · ")))));
    return html + dimSentences(explanation.cautions);
}

} // namespace klineage::ui
