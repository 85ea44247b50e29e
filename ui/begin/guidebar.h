// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QStringList>

class QLabel;

namespace klineage::ui {

/// Three lines for somebody who sees the window for the first time, and a button that puts them away.
class GuideBar : public QFrame
{
    Q_OBJECT

public:
    explicit GuideBar(QWidget *parent = nullptr);

    void setLines(const QStringList &lines); ///< plain text
    [[nodiscard]] QStringList lines() const;

signals:
    void dismissed();

private:
    QLabel *m_text;
};

} // namespace klineage::ui
