// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QWidget>

class QLabel;
class QLineEdit;

namespace klineage::ui {

/// The line to search in, and the commands that go with it: "<name>.find", "<name>.findNext" and "<name>.findPrevious" act in the panel,
/// "<name>.closeFind" in the line and in the text while the line is there. It finds nothing itself.
class FindBar : public QWidget
{
    Q_OBJECT

public:
    /// text: what is searched in; neither is owned. where: "Find on both sides".
    FindBar(QWidget *panel, QWidget *text, const QString &name, const QString &where);

    void open(const QString &text); ///< an empty text keeps the last one
    [[nodiscard]] QString text() const;
    /// current is 0-based; -1: none.
    void setCount(int current, int count, bool truncated);
    [[nodiscard]] QList<QAction *> commands() const { return m_commands; }

signals:
    void openWanted(); ///< to be answered with open()
    void textChanged(const QString &text);
    void nextWanted();
    void previousWanted();
    void closed();

protected:
    void keyPressEvent(QKeyEvent *event) override;

private:
    void addButton(const QString &iconName, const QString &tip, QAction *action);
    void close();

    QLineEdit *m_edit;
    QLabel *m_count;
    QAction *m_close;
    QList<QAction *> m_commands;
};

} // namespace klineage::ui
