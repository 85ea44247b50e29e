// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/pdfreport.h"

#include "core/report/writers.h"
#include "ui/report/figureobject.h"
#include "ui/report/pages.h"
#include "ui/style/theme.h"

#include <QAbstractTextDocumentLayout>
#include <QApplication>
#include <QBuffer>
#include <QPainter>
#include <QPdfWriter>
#include <QTextDocument>
#include <QTextOption>

namespace klineage::ui {

namespace {

constexpr int resolution = 600; ///< dots an inch: what text is laid out on
constexpr double textPoints = 8;
constexpr double footPoints = 7;
constexpr double marginMm = 13;
constexpr double footMm = 8;

// The part of CSS that QTextDocument has.
constexpr const char *pdfStyle = R"css(
body { color: #1b222b; }
h1 { font-size: 17pt; font-weight: 600; margin: 0; }
h2 { font-size: 11pt; font-weight: 600; margin-top: 16px; margin-bottom: 5px; }
p { margin-top: 4px; margin-bottom: 4px; }
p.subtitle { color: #596472; }
figcaption { color: #596472; }
table { border-collapse: collapse; border-style: none; margin-top: 4px; }
th { text-align: left; color: #596472; font-weight: 600; font-size: 7.5pt; padding: 2px 10px 2px 0;
  border-bottom: 1px solid #8a95a3; vertical-align: bottom; }
td { font-size: 7.5pt; padding: 2px 10px 2px 0; border-bottom: 1px solid #dde2e8; vertical-align: top; }
pre { font-family: "JetBrains Mono NL"; font-size: 7.5pt; background-color: #f5f6f8; margin-top: 2px; margin-bottom: 6px; }
.figure { text-align: right; white-space: nowrap; }
th.figure { white-space: normal; }
.interval { color: #596472; font-size: 7pt; }
.facts th, .facts td { border-bottom-style: none; padding: 1px 16px 1px 0; font-weight: 400; vertical-align: top; }
)css";

QString pdfHtml(const report::Document &document, const ReportFigures &figures)
{
    report::HtmlParts parts;
    parts.style = pdfStyle;
    parts.tableAttributes = " width=\"100%\" cellspacing=\"0\"";
    parts.drawn = [&figures](const report::Figure &figure) {
        return figures.contains(figure.name) ? "<p><img src=\"" + figure.name + "\"/></p>" : std::string();
    };
    return QString::fromStdString(report::asHtml(document, parts));
}

/// A part of the document, at that height of the page.
void drawBand(QPainter &painter, QTextDocument &text, const Band &band, double at)
{
    if (band.height() <= 0)
        return;
    const QRectF view(0, band.top, text.textWidth(), band.height());
    painter.save();
    painter.translate(0, at - band.top);
    QAbstractTextDocumentLayout::PaintContext context;
    context.clip = view;
    context.palette = Theme::light().palette();
    painter.setClipRect(view);
    text.documentLayout()->draw(&painter, context);
    painter.restore();
}

void drawFoot(QPainter &painter, const QRectF &foot, const QString &title, int page, int pages)
{
    QFont font = QApplication::font();
    font.setPointSizeF(footPoints);
    painter.setFont(font);
    painter.setPen(Theme::light().dim);
    painter.drawText(foot, Qt::AlignLeft | Qt::AlignBottom, title);
    painter.drawText(foot, Qt::AlignRight | Qt::AlignBottom, QStringLiteral("%1 / %2").arg(page).arg(pages));
}

} // namespace

QByteArray asPdf(const report::Document &document, const ReportFigures &figures)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setResolution(resolution);
    writer.setPageLayout(QPageLayout(QPageSize(QPageSize::A4), QPageLayout::Landscape,
                                     QMarginsF(marginMm, marginMm, marginMm, marginMm),
                                     QPageLayout::Millimeter));
    const QString title = QString::fromStdString(document.title);
    writer.setTitle(title);
    writer.setCreator(QStringLiteral("KLineage Workbench"));

    const QRectF paper(QPointF(), QSizeF(writer.width(), writer.height()));
    const double foot = footMm / 25.4 * resolution;
    QFont font = QApplication::font();
    font.setPointSizeF(textPoints);
    FigureObject figureObject(figures);
    QTextDocument text;
    text.setDocumentMargin(0);
    text.setDefaultFont(font);
    text.setDefaultTextOption(QTextOption()); // else a table may break its words to make columns narrow
    text.documentLayout()->setPaintDevice(&writer);
    text.documentLayout()->registerHandler(QTextFormat::ImageObject, &figureObject);
    text.setTextWidth(paper.width());
    text.setHtml(pdfHtml(document, figures));

    QPainter painter(&writer);
    const std::vector<Page> pages = pagesOf(text, paper.height() - foot);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        if (i > 0)
            writer.newPage();
        drawBand(painter, text, pages[i].header, 0);
        drawBand(painter, text, pages[i].body, pages[i].header.height());
        drawFoot(painter, paper, title, static_cast<int>(i) + 1, static_cast<int>(pages.size()));
    }
    painter.end();
    return bytes;
}

} // namespace klineage::ui
