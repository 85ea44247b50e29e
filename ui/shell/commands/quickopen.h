// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/shell/commands/quickopenmodel.h"

#include <QFrame>
#include <QPointer>

class QLabel;
class QLineEdit;
class QListView;

namespace klineage::ui {

/// A field and a list over the window: type, Return does it, Esc goes back to where the focus was.
class QuickOpen : public QFrame
{
    Q_OBJECT

public:
    explicit QuickOpen(QWidget *window);

    void open(const QString &placeholder, std::vector<QuickEntry> entries);
    [[nodiscard]] QLineEdit *field() const { return m_field; }
    [[nodiscard]] QuickOpenModel *model() const { return m_model; }

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;

private:
    void place();
    void dismiss(bool restoreFocus);
    void run(const QModelIndex &index);
    void moveBy(int by);

    QuickOpenModel *m_model;
    QLineEdit *m_field;
    QListView *m_list;
    QLabel *m_none;
    QPointer<QWidget> m_focusBefore;
};

} // namespace klineage::ui
