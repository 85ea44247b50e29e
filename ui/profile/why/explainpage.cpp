// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/why/explainpage.h"

#include "ui/profile/why/explainhtml.h"

#include <QTextDocument>
#include <QUrl>

namespace klineage::ui {

ExplainPage::ExplainPage(QWidget *parent)
    : QTextBrowser(parent)
{
    setAccessibleName(tr("Why the step changed the time"));
    setFrameShape(QFrame::NoFrame);
    setOpenLinks(false);
    document()->setDocumentMargin(10);
    connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl &url) { follow(url.toString()); });
}

void ExplainPage::setExplanation(const gate::Explanation &explanation)
{
    setHtml(explainHtml(explanation));
}

void ExplainPage::showMessage(const QString &text)
{
    setPlainText(text);
}

void ExplainPage::follow(const QString &target)
{
    const auto link = explainLink(target);
    if (!link)
        return;
    if (link->metric.isEmpty())
        emit sourceLineWanted(link->side, link->line);
    else
        emit metricWanted(link->metric);
}

} // namespace klineage::ui
