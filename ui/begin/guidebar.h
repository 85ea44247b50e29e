// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QSet>
#include <QStringList>

class QLabel;

namespace klineage::ui {

/// Three lines for somebody who sees the window for the first time, and a button that puts them away. A line that was followed has a tick; when
/// all have one, the bar puts itself away.
class GuideBar : public QFrame
{
    Q_OBJECT

public:
    explicit GuideBar(QWidget *parent = nullptr);

    void setLines(const QStringList &lines); ///< plain text
    [[nodiscard]] QStringList lines() const; ///< with their ticks
    void tick(qsizetype line);               ///< nothing while the bar is hidden
    void untick();                           ///< all of them

signals:
    void dismissed();

private:
    void showLines();

    QLabel *m_text;
    QStringList m_lines;
    QSet<qsizetype> m_ticked;
};

} // namespace klineage::ui
