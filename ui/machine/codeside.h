// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/coderequest.h"

#include <QWidget>

class QLabel;
class QPushButton;
class QStackedWidget;

namespace klineage::ui {

class CodeView;

/// One side: what its machine code is, and the list of it; or why there is none; or what is being made.
class CodeSide : public QWidget
{
    Q_OBJECT

public:
    /// place: "older state", for names that are read out.
    explicit CodeSide(const QString &place, QWidget *parent = nullptr);

    void setLabel(const QString &label);
    [[nodiscard]] QString label() const { return m_label; }
    void setCode(const SideCode &code);
    void setMessage(const QString &text);
    /// With a way to stop it.
    void setBusy(const QString &text);
    /// With a way to do it after all.
    void setStopped(const QString &text);

    [[nodiscard]] CodeView *view() const { return m_view; }
    /// nullptr while there is none.
    [[nodiscard]] const MachineCode *code() const;
    [[nodiscard]] QString facts() const;
    [[nodiscard]] QString message() const; ///< empty while code is shown

    /// As CodeView::markLine(), said in the heading.
    int markLine(int line);

    /// The list gives way to what stands above the sides.
    bool hasHeightForWidth() const override { return false; }
    QSize minimumSizeHint() const override;

signals:
    void stopRequested();
    void startRequested();

private:
    void showText(const QString &text, const QString &button);
    void showHeading();
    void sayMarked(int line);

    QString m_place;
    QString m_label;
    QString m_factsText;
    QString m_marked; ///< "4 instructions of line 12"
    bool m_isBusy = false;
    QLabel *m_title;
    QLabel *m_facts;
    CodeView *m_view;
    QLabel *m_message;
    QPushButton *m_button;
    QStackedWidget *m_stack;
};

} // namespace klineage::ui
