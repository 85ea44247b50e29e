// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/explain/explain.h"

#include <QTextBrowser>

namespace klineage::ui {

/// Why a step changed the time, in words. Its links lead to figures and to lines of the sources; Tab goes to the next one, Enter follows it.
class ExplainPage : public QTextBrowser
{
    Q_OBJECT

public:
    explicit ExplainPage(QWidget *parent = nullptr);

    void setExplanation(const gate::Explanation &explanation);
    void showMessage(const QString &text); ///< instead: what is waited for

signals:
    void metricWanted(const QString &metric);
    void sourceLineWanted(int side, int line); ///< 0 left, 1 right; 1-based

private:
    void follow(const QString &target);
};

} // namespace klineage::ui
