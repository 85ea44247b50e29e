// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/reportfile.h"

#include "core/report/writers.h"
#include "ui/plots/plotexport.h"
#include "ui/report/pdfreport.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QCoreApplication>
#include <QFileInfo>

namespace klineage::ui {

namespace {

QString reportText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::ReportFile", text);
}

QByteArray bytesOf(const std::string &text)
{
    return QByteArray(text.data(), static_cast<qsizetype>(text.size()));
}

QByteArray htmlPage(const report::Document &document, const ReportFigures &figures)
{
    report::HtmlParts parts;
    parts.hasData = true;
    parts.drawn = [&figures](const report::Figure &figure) {
        const auto found = figures.find(figure.name);
        return found == figures.end() ? std::string() : found->second.toStdString();
    };
    return bytesOf(report::asHtml(document, parts));
}

} // namespace

QString writeReportFile(const Workspace &workspace, const std::string &name, const QString &fileName)
{
    const QString suffix = QFileInfo(fileName).suffix().toLower();
    const bool isPdf = suffix == QLatin1String("pdf");
    if (!isPdf && suffix != QLatin1String("html") && suffix != QLatin1String("md"))
        return reportText("Cannot write the report %1: the name must end in .html, .pdf or .md.")
            .arg(fileName);
    const Result<report::Subject> subject = report::findSubject(workspace, name);
    if (!subject)
        return QString::fromStdString(subject.error().message);
    const report::Document document = report::makeReport(workspace, *subject);
    if (suffix == QLatin1String("md"))
        return saveExport(bytesOf(report::asMarkdown(document)), fileName);
    const ThemeChoice before = Theme::choice();
    Theme::apply(*qApp, ThemeChoice::Light);
    const ReportFigures figures = drawFigures(workspace, *subject, document);
    const QByteArray bytes = isPdf ? asPdf(document, figures) : htmlPage(document, figures);
    Theme::apply(*qApp, before);
    return saveExport(bytes, fileName);
}

} // namespace klineage::ui
